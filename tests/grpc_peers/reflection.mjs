// SPDX-License-Identifier: Apache-2.0
//
// What a server says of itself: its services, and clients made of the descriptors that its reflection service gives. No .proto file of
// this project is read.

import { createRequire } from "node:module";
import path from "node:path";

import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const require = createRequire(import.meta.url);

// How numbers and bytes come out: 64-bit ones as BigInt-safe strings, enums by name, bytes as buffers, all fields there.
const OPTIONS = { longs: String, enums: String, bytes: Buffer, defaults: true, oneofs: true };

function standardProto(packageName, ...names) {
  const root = path.dirname(require.resolve(`${packageName}/package.json`));
  return grpc.loadPackageDefinition(loader.loadSync(path.join(root, ...names), OPTIONS));
}

const reflection = standardProto("@grpc/reflection", "build", "proto", "grpc", "reflection", "v1alpha", "reflection.proto");
export const health = standardProto("grpc-health-check", "proto", "health", "v1", "health.proto").grpc.health.v1;

/** One call with a deadline; throws grpc's error. */
export function call(client, method, request = {}, seconds = 20) {
  return new Promise((resolve, reject) => {
    client[method](request, { deadline: Date.now() + seconds * 1000 }, (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

/** A server seen through its reflection service. */
export class Reflected {
  constructor(address) {
    this.address = address;
    const Client = reflection.grpc.reflection.v1alpha.ServerReflection;
    this.client = new Client(address, grpc.credentials.createInsecure());
  }

  ask(request) {
    return new Promise((resolve, reject) => {
      const stream = this.client.ServerReflectionInfo({ deadline: Date.now() + 20_000 });
      stream.on("data", (answer) => {
        stream.end();
        if (answer.errorResponse) reject(new Error(`reflection: ${answer.errorResponse.errorMessage}`));
        else resolve(answer);
      });
      stream.on("error", reject);
      stream.write(request);
    });
  }

  async services() {
    const answer = await this.ask({ listServices: "" });
    return answer.listServicesResponse.service.map((service) => service.name).sort();
  }

  /** Everything that the file with a symbol needs, as one package definition. */
  async packageOf(symbol) {
    const files = new Map(); // by content: the server gives a file's dependencies with it, or they are asked for
    const names = new Set();
    const take = async (answer) => {
      for (const bytes of answer.fileDescriptorResponse.fileDescriptorProto) {
        const { name, dependency } = fileHead(bytes);
        if (names.has(name)) continue;
        names.add(name);
        for (const needed of dependency) if (!names.has(needed)) await take(await this.ask({ fileByFilename: needed }));
        files.set(name, bytes);
      }
    };
    await take(await this.ask({ fileContainingSymbol: symbol }));
    // FileDescriptorSet { repeated FileDescriptorProto file = 1; }
    const set = Buffer.concat([...files.values()].flatMap((bytes) => [Buffer.from([0x0a]), varint(bytes.length), bytes]));
    return loader.loadFileDescriptorSetFromBuffer(set, OPTIONS);
  }

  /** A client of a service, by its full name. */
  async service(name) {
    const definition = await this.packageOf(name);
    const Client = grpc.makeGenericClientConstructor(definition[name], name);
    return new Client(this.address, grpc.credentials.createInsecure());
  }

  close() {
    this.client.close();
  }
}

/** The varint of a number. */
function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  bytes.push(number);
  return Buffer.from(bytes);
}

/** name = 1 and dependency = 3 of a FileDescriptorProto. */
function fileHead(bytes) {
  const head = { name: "", dependency: [] };
  let at = 0;
  const read = () => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = read();
    if ((tag & 7) === 0) {
      read();
      continue;
    }
    if ((tag & 7) !== 2) throw new Error(`a descriptor with wire type ${tag & 7}`);
    const length = read();
    const text = bytes.subarray(at, at + length).toString("utf8");
    if (tag >> 3 === 1) head.name = text;
    if (tag >> 3 === 3) head.dependency.push(text);
    at += length;
  }
  return head;
}
