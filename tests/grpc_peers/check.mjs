// SPDX-License-Identifier: Apache-2.0
//
//   node check.mjs PUBLIC_PORT TRAINER_PORT HTTP_PORT ORIGIN
//
// Calls a fresh coordinator as somebody would who has never seen this project: by reflection, with gRPC for Node.

import assert from "node:assert/strict";

import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

import { Reflected, call, health } from "./reflection.mjs";

const [publicPort, trainerPort, httpPort, origin] = process.argv.slice(2);
let passed = 0;

async function check(name, body) {
  await body();
  passed += 1;
  console.log(`ok    ${name}`);
}

async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("the call should have failed");
}

/** The one google.rpc.ErrorInfo in an error's google.rpc.Status, as any client of Google's error model reads it. */
function errorInfo(error, types) {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  const status = types.Status.decode(bytes);
  assert.equal(status.code, error.code);
  assert.equal(status.message, error.details);
  assert.equal(status.details.length, 1);
  assert.equal(status.details[0].type_url, "type.googleapis.com/google.rpc.ErrorInfo");
  return types.ErrorInfo.decode(status.details[0].value);
}

/** google.rpc's messages as published (github.com/googleapis/googleapis), as far as they are read here. */
function errorTypes() {
  const definition = loader.fromJSON({
    nested: {
      Any: { fields: { type_url: { type: "string", id: 1 }, value: { type: "bytes", id: 2 } } },
      Status: { fields: { code: { type: "int32", id: 1 }, message: { type: "string", id: 2 }, details: { rule: "repeated", type: "Any", id: 3 } } },
      ErrorInfo: {
        fields: { reason: { type: "string", id: 1 }, domain: { type: "string", id: 2 }, metadata: { keyType: "string", type: "string", id: 3 } },
      },
      Reader: { methods: { status: { requestType: "Status", responseType: "Status" }, info: { requestType: "ErrorInfo", responseType: "ErrorInfo" } } },
    },
  }, { keepCase: true, bytes: Buffer, defaults: true }); // prettier-ignore
  const methods = definition.Reader;
  return { Status: { decode: methods.status.responseDeserialize }, ErrorInfo: { decode: methods.info.responseDeserialize } };
}

const types = errorTypes();
const open = new Reflected(`127.0.0.1:${publicPort}`);
const trainers = new Reflected(`127.0.0.1:${trainerPort}`);

await check("the services of each port, by reflection", async () => {
  const common = ["grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"];
  assert.deepEqual(await open.services(), [...common, "lockstep.v1.AuditService", "lockstep.v1.PublicService"]);
  assert.deepEqual(await trainers.services(), [...common, "lockstep.v1.AuditService", "lockstep.v1.TrainerService"]);
});

await check("health", async () => {
  for (const [server, services] of [
    [open, ["", "lockstep.v1.AuditService", "lockstep.v1.PublicService"]],
    [trainers, ["", "lockstep.v1.AuditService", "lockstep.v1.TrainerService"]],
  ]) {
    const client = new health.Health(server.address, grpc.credentials.createInsecure());
    for (const service of services) assert.equal((await call(client, "check", { service })).status, "SERVING", service);
    assert.equal((await errorOf(call(client, "check", { service: "lockstep.v1.Nothing" }))).code, grpc.status.NOT_FOUND);
    client.close();
  }
});

await check("GetServerInfo, on either port", async () => {
  for (const server of [open, trainers]) {
    const client = await server.service("lockstep.v1.AuditService");
    const info = await call(client, "GetServerInfo");
    assert.equal(info.origin, origin);
    assert.match(info.log_key, new RegExp(`^${origin}\\+[0-9a-f]{8}\\+[A-Za-z0-9+/]{44}$`));
    assert.ok(Math.abs(Number(info.server_time_ms) - Date.now()) < 60_000);
    assert.equal(info.artifact_url, `http://127.0.0.1:${httpPort}`);
    assert.match(info.version, /^\d+\.\d+/);
    client.close();
  }
});

const publicService = await open.service("lockstep.v1.PublicService");

await check("lists", async () => {
  assert.deepEqual(await call(publicService, "ListRuns", { page_size: 10 }), { runs: [], next_page_token: "" });
  assert.deepEqual(await call(publicService, "ListOperators"), { operators: [], next_page_token: "" });
  const head = await call(publicService, "GetLogHead");
  assert.equal(head.size, "0");
  assert.ok(head.checkpoint.startsWith(`${origin}\n0\n`));
  // The same over HTTP, as a monitor of logs reads it.
  assert.equal(await (await fetch(`http://127.0.0.1:${httpPort}/checkpoint`)).text(), head.checkpoint);
});

await check("errors have a google.rpc.ErrorInfo", async () => {
  const short = await errorOf(call(publicService, "GetRun", { run_id: Buffer.from("short") }));
  assert.equal(short.code, grpc.status.INVALID_ARGUMENT);
  assert.deepEqual(errorInfo(short, types), { reason: "REQUEST_INVALID", domain: "lockstep.v1", metadata: {} });
  const unknown = await errorOf(call(publicService, "GetRun", { run_id: Buffer.alloc(32, 1) }));
  assert.equal(unknown.code, grpc.status.NOT_FOUND);
  assert.equal(errorInfo(unknown, types).reason, "RUN_UNKNOWN");
  const audit = await open.service("lockstep.v1.AuditService");
  const unsigned = await errorOf(call(audit, "AcquireLease", { payload: Buffer.from("x"), public_key: Buffer.alloc(32), signature: Buffer.alloc(64) }));
  assert.equal(errorInfo(unsigned, types).reason, "SIGNATURE_INVALID");
  const garbage = await errorOf(call(audit, "SubmitKeyEvent", { envelope: Buffer.from("{}") }));
  assert.equal(errorInfo(garbage, types).reason, "ENVELOPE_INVALID");
  audit.close();
});

await check("a message that is too large is refused", async () => {
  const audit = await open.service("lockstep.v1.AuditService");
  const error = await errorOf(call(audit, "SubmitKeyEvent", { envelope: Buffer.alloc(300 << 10) }));
  assert.equal(error.code, grpc.status.RESOURCE_EXHAUSTED);
  audit.close();
});

publicService.close();
open.close();
trainers.close();
console.log(`${passed} passed, 0 failed`);
