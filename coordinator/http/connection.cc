// SPDX-License-Identifier: Apache-2.0
//
// Each function starts one asynchronous step and returns; its completion starts the next. See
// connection.h.
#include "coordinator/http/connection.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/logging.h"
#include "coordinator/http/queued_stream.h"
#include "coordinator/http/response_head.h"

namespace lockstep::coordinator {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kHeadPieceBytes = 4096;
constexpr size_t kBodyPieceBytes = 256 << 10;
constexpr uint64_t kFilePieceBytes = 1 << 20;
constexpr absl::Duration kLingerPatience = absl::Seconds(2);
constexpr size_t kLingerBytesMax = 1 << 20;

}  // namespace

template <typename Work, typename Then>
void Connection::RunOn(asio::thread_pool& pool, Work work, Then then) {
  asio::post(pool,
             [self = shared_from_this(), work = std::move(work), then = std::move(then)]() mutable {
               auto result = work();
               asio::post(self->state_.io,
                          [self, result = std::move(result), then = std::move(then)]() mutable {
                            if (!self->ended_) then(std::move(result));
                          });
             });
}

Connection::Connection(ServerState& state, tcp::socket socket, std::string peer)
    : state_(state),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      deadline_(state.io),
      heartbeat_(state.io) {}

Connection::~Connection() = default;

void Connection::Start() {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.native_non_blocking(true, ignored);
  ReadHead();
}

// The descriptor stays open until nobody uses this connection: a thread may be sending a file.
void Connection::End() {
  if (std::exchange(ended_, true)) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  Disarm();
  heartbeat_.cancel();
  SetWaiting(false);
  if (stream_) {
    stream_->End();
    --state_.streams;
  }
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.cancel(ignored);
  state_.connections.erase(self);
  if (const auto count = state_.by_address.find(peer_);
      count != state_.by_address.end() && --count->second == 0) {
    state_.by_address.erase(count);
  }
  state_.metrics.SetConnections(state_.connections.size());
  if (state_.connections.empty() && state_.when_empty) state_.when_empty();
}

void Connection::OnStopping() {
  keep_alive_ = false;
  if (waiting_ && buffer_.empty()) return End();
  if (stream_) stream_->Close();
}

void Connection::SetWaiting(bool waiting) {
  if (waiting == waiting_.has_value()) return;
  if (waiting) {
    waiting_ = state_.waiting.insert(state_.waiting.end(), this);
  } else {
    state_.waiting.erase(*waiting_);
    waiting_.reset();
  }
}

void Connection::Arm(absl::Duration patience, const char* reason) {
  const uint64_t count = ++deadline_count_;
  deadline_reason_ = reason;
  deadline_.expires_after(absl::ToChronoNanoseconds(std::max(patience, absl::ZeroDuration())));
  deadline_.async_wait([self = shared_from_this(), count](error_code error) {
    if (error || count != self->deadline_count_) return;
    if (*self->deadline_reason_ != '\0') self->state_.metrics.CountDropped(self->deadline_reason_);
    self->End();
  });
}

// Whether the step that completed is the last of this connection.
bool Connection::Failed(const error_code& error) {
  if (error) End();
  return ended_;
}

void Connection::Disarm() {
  ++deadline_count_;
  deadline_.cancel();
}

// No byte for `stall`, or fewer in all than the least speed asks for.
void Connection::ArmTransfer(absl::Duration stall, const char* reason) {
  const absl::Duration earned = absl::Seconds(
      static_cast<double>(transferred_) / static_cast<double>(state_.options.bytes_per_second_min));
  const absl::Duration left = transfer_started_ + stall + earned - RealClock().Monotonic();
  Arm(std::min(stall, left), reason);
}

// ---- The request

void Connection::ReadHead() {
  if (state_.stopping && buffer_.empty()) return End();
  SetWaiting(true);
  searched_ = 0;
  if (TakeHead()) return;
  if (!buffer_.empty()) {
    Arm(state_.options.head_timeout, "head_timeout");
    return ReadHeadBytes();
  }
  buffer_.shrink_to_fit();  // a connection that idles costs little
  Arm(state_.options.idle_timeout, "");
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
    if (self->Failed(error)) return;
    self->Arm(self->state_.options.head_timeout, "head_timeout");
    self->ReadHeadBytes();
  });
}

void Connection::ReadHeadBytes() {
  const size_t before = buffer_.size();
  buffer_.resize(before + kHeadPieceBytes);
  socket_.async_read_some(asio::buffer(buffer_.data() + before, kHeadPieceBytes),
                          [self = shared_from_this(), before](error_code error, size_t got) {
                            self->buffer_.resize(before + got);
                            if (self->Failed(error)) return;
                            if (!self->TakeHead()) self->ReadHeadBytes();
                          });
}

// False if more is to be read.
bool Connection::TakeHead() {
  const std::optional<size_t> end = FindHeadEnd(buffer_, searched_);
  searched_ = buffer_.size();
  const bool too_long = end.value_or(buffer_.size()) > state_.options.head_bytes_max;
  if (!end && !too_long) return false;
  Disarm();
  SetWaiting(false);
  started_ = RealClock().Monotonic();
  request_ = {};
  route_ = nullptr;
  unread_body_ = false;
  std::variant<RequestHead, HttpResponse> head =
      too_long ? TextResponse(431, "the head of the request is too long")
               : ParseRequestHead(absl::string_view(buffer_).substr(0, *end));
  buffer_.erase(0, end.value_or(0));
  if (auto* refusal = std::get_if<HttpResponse>(&head)) {
    state_.metrics.CountDropped("bad_request");
    unread_body_ = true;  // whatever follows is not known to be a request
    Respond(std::move(*refusal));
  } else {
    Dispatch(std::get<RequestHead>(std::move(head)));
  }
  return true;
}

void Connection::Dispatch(RequestHead head) {
  request_ = std::move(head.request);
  request_.peer = peer_;
  http_1_1_ = head.http_1_1;
  keep_alive_ = head.keep_alive;
  expects_continue_ = head.expects_continue;
  unread_body_ = request_.content_length > 0;
  route_ = state_.router.Find(request_.path);
  if (route_ == nullptr) return Respond(TextResponse(404, "there is nothing here"));
  const bool put = request_.method == HttpMethod::kPut;
  if (put ? !route_->put : !route_->get) {
    HttpResponse response = TextResponse(405, "not by this method");
    response.headers.emplace_back(
        "Allow", absl::StrCat(route_->get ? "GET, HEAD" : "",
                              route_->get && route_->put ? ", " : "", route_->put ? "PUT" : ""));
    return Respond(std::move(response));
  }
  put ? OpenUpload() : RunHandler();
}

void Connection::RunHandler() {
  RunOn(
      state_.handlers,
      [this]() -> HttpResponse {
        try {
          return route_->get(request_);
        } catch (const std::exception& error) {
          LOCKSTEP_LOG_ERROR("handler of {} threw: {}", route_->pattern, error.what());
          return TextResponse(500, "the server failed");
        }
      },
      [this](HttpResponse response) { Respond(std::move(response)); });
}

void Connection::OpenUpload() {
  RunOn(
      state_.uploads,
      [this]() -> UploadAnswer {
        try {
          return route_->put(request_);
        } catch (const std::exception& error) {
          LOCKSTEP_LOG_ERROR("handler of {} threw: {}", route_->pattern, error.what());
          return TextResponse(500, "the server failed");
        }
      },
      [this](UploadAnswer answer) {
        if (auto* response = std::get_if<HttpResponse>(&answer)) {
          return Respond(std::move(*response));
        }
        body_ = std::get<std::unique_ptr<RequestBody>>(std::move(answer));
        body_left_ = request_.content_length;
        transfer_started_ = RealClock().Monotonic();
        transferred_ = 0;
        if (expects_continue_ && body_left_ > 0 && buffer_.empty()) return SendContinue();
        ReadBody();
      });
}

void Connection::SendContinue() {
  SendBytes("HTTP/1.1 100 Continue\r\n\r\n", &Connection::ReadBody);
}

void Connection::ReadBody() {
  if (body_left_ == 0) return FinishBody();
  if (!buffer_.empty()) {
    const size_t size = std::min<uint64_t>(buffer_.size(), body_left_);
    body_bytes_ = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return WriteBody();
  }
  body_bytes_.resize(std::min<uint64_t>(kBodyPieceBytes, body_left_));
  ArmTransfer(state_.options.body_stall_timeout, "body_timeout");
  socket_.async_read_some(asio::buffer(body_bytes_.data(), body_bytes_.size()),
                          [self = shared_from_this()](error_code error, size_t got) {
                            if (self->Failed(error)) return;
                            self->Disarm();
                            self->body_bytes_.resize(got);
                            self->WriteBody();
                          });
}

void Connection::WriteBody() {
  body_left_ -= body_bytes_.size();
  transferred_ += body_bytes_.size();
  state_.metrics.CountReceived(body_bytes_.size());
  RunOn(
      state_.uploads, [this] { return body_->Write(AsBytes(body_bytes_)); },
      [this](std::optional<HttpResponse> refusal) {
        if (!refusal) return ReadBody();
        unread_body_ = body_left_ > 0;
        body_.reset();
        Respond(*std::move(refusal));
      });
}

void Connection::FinishBody() {
  RunOn(
      state_.uploads, [this] { return body_->Finish(); },
      [this](HttpResponse response) {
        unread_body_ = false;
        body_.reset();
        Respond(std::move(response));
      });
}

// ---- The answer

void Connection::Respond(HttpResponse response) {
  body_bytes_ = {};
  response_ = std::move(response);
  if (std::holds_alternative<StreamBody>(response_.body) &&
      state_.streams >= state_.options.streams_max) {
    response_ = TextResponse(503, "too many streams are open; try again later");
    response_.headers.emplace_back("Retry-After", "10");
  }
  response_.cross_origin = route_ != nullptr && request_.method != HttpMethod::kPut &&
                           route_->origins == Router::Origins::kAny;
  Framing framing;
  std::string first;  // what goes with the head
  if (auto* text = std::get_if<std::string>(&response_.body)) {
    framing.content_length = text->size();
    first = std::move(*text);
  } else if (const auto* file = std::get_if<FileBody>(&response_.body)) {
    framing.content_length = file->size;
  } else if (std::holds_alternative<GeneratedBody>(response_.body)) {
    framing.chunked = http_1_1_;
    keep_alive_ = keep_alive_ && http_1_1_;
  } else {
    framing.chunked = http_1_1_;
    keep_alive_ = false;
  }
  keep_alive_ = keep_alive_ && !unread_body_ && !state_.stopping;
  framing.keep_alive = keep_alive_;
  std::string head = FormatResponseHead(response_, framing, absl::Now());
  transfer_started_ = RealClock().Monotonic();
  transferred_ = 0;
  if (request_.method == HttpMethod::kHead || response_.status == 304) {
    return SendBytes(std::move(head), &Connection::FinishResponse);
  }
  state_.metrics.CountSent(first.size());
  SendBytes(std::move(head) + first, &Connection::SendBody);
}

void Connection::SendBytes(std::string bytes, Next next) {
  out_ = std::move(bytes);
  out_sent_ = 0;
  after_out_ = next;
  SendMoreBytes();
}

void Connection::SendMoreBytes() {
  if (out_sent_ == out_.size()) {
    out_ = {};
    Disarm();
    return (this->*after_out_)();
  }
  if (stream_) {  // as fast as it is written
    Arm(state_.options.write_stall_timeout, "write_timeout");
  } else {
    ArmTransfer(state_.options.write_stall_timeout, "write_timeout");
  }
  socket_.async_write_some(asio::buffer(out_.data() + out_sent_, out_.size() - out_sent_),
                           [self = shared_from_this()](error_code error, size_t sent) {
                             if (self->Failed(error)) return;
                             self->out_sent_ += sent;
                             self->transferred_ += sent;
                             self->SendMoreBytes();
                           });
}

void Connection::SendBody() {
  if (std::holds_alternative<FileBody>(response_.body)) {
    file_sent_ = 0;
    SendFile();
  } else if (std::holds_alternative<StreamBody>(response_.body)) {
    StartStream();
  } else if (std::holds_alternative<GeneratedBody>(response_.body)) {
    generated_all_ = false;
    SendGenerated();
  } else {
    FinishResponse();
  }
}

// From the page cache into the socket, without a buffer of ours. Reading may wait for the disk, so
// it is not done on this thread.
void Connection::SendFile() {
  const auto& body = std::get<FileBody>(response_.body);
  if (file_sent_ == body.size) return FinishResponse();
  struct Sent {
    uint64_t bytes;
    int error;
  };
  RunOn(
      state_.handlers,
      [fd = socket_.native_handle(), file = body.file, at = body.begin + file_sent_,
       left = body.size - file_sent_]() -> Sent {
        auto offset = static_cast<off_t>(at);
        const ssize_t sent = ::sendfile(fd, file->fd(), &offset, std::min(left, kFilePieceBytes));
        if (sent < 0) return {0, errno};
        // A file that became shorter cannot be what was promised.
        return {static_cast<uint64_t>(sent), sent == 0 ? EIO : 0};
      },
      [this](Sent sent) { OnFileSent(sent.bytes, sent.error); });
}

void Connection::OnFileSent(uint64_t sent, int error) {
  file_sent_ += sent;
  transferred_ += sent;
  state_.metrics.CountSent(sent);
  if (error == 0 || error == EINTR) return SendFile();
  if (error != EAGAIN) return End();
  ArmTransfer(state_.options.write_stall_timeout, "write_timeout");
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code failed) {
    if (self->Failed(failed)) return;
    self->Disarm();
    self->SendFile();
  });
}

void Connection::SendGenerated() {
  if (generated_all_) return FinishResponse();
  RunOn(
      state_.handlers,
      [this]() -> absl::StatusOr<std::string> {
        try {
          return std::get<GeneratedBody>(response_.body).next();
        } catch (const std::exception& error) {
          return absl::InternalError(error.what());
        }
      },
      [this](absl::StatusOr<std::string> bytes) {
        if (!bytes.ok()) {
          LOCKSTEP_LOG_WARNING("answer of {} broken off: {}", route_->pattern, bytes.status());
          return End();
        }
        state_.metrics.CountSent(bytes->size());
        generated_all_ = bytes->empty();
        if (http_1_1_) {
          *bytes = generated_all_ ? "0\r\n\r\n"
                                  : absl::StrCat(absl::Hex(bytes->size()), "\r\n", *bytes, "\r\n");
        }
        SendBytes(*std::move(bytes), &Connection::SendGenerated);
      });
}

void Connection::StartStream() {
  auto& body = std::get<StreamBody>(response_.body);
  ++state_.streams;
  // `wake` is not called once End was, and End is before `io` goes.
  stream_ = std::make_shared<QueuedStream>(
      state_.options.stream_bytes_max, [&io = state_.io, weak = weak_from_this()] {
        asio::post(io, [weak] {
          if (const auto self = weak.lock(); self && !self->ended_) self->FlushStream();
        });
      });
  heartbeat_text_ = std::move(body.heartbeat);
  asio::post(state_.handlers, [start = std::move(body.start), stream = stream_] { start(stream); });
  WatchReader();
  ArmHeartbeat();
  if (state_.stopping) stream_->Close();
}

// A reader who leaves says nothing but that.
void Connection::WatchReader() {
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
    if (error || self->ended_) return;
    char byte;
    const ssize_t got = ::recv(self->socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) self->End();
  });
}

void Connection::ArmHeartbeat() {
  stream_quiet_ = true;
  heartbeat_.expires_after(absl::ToChronoNanoseconds(state_.options.heartbeat));
  heartbeat_.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->ended_) return;
    if (self->stream_quiet_ && !self->heartbeat_text_.empty()) {
      self->stream_->Write(self->heartbeat_text_);
    }
    self->ArmHeartbeat();
  });
}

void Connection::FlushStream() {
  if (stream_busy_) return;
  QueuedStream::Taken taken = stream_->Take();
  if (taken.overflowed) {
    state_.metrics.CountDropped("stream_overflow");
    return End();
  }
  if (taken.bytes.empty()) {
    if (!taken.closed) return;
    stream_busy_ = true;  // for good
    return http_1_1_ ? SendBytes("0\r\n\r\n", &Connection::FinishResponse) : FinishResponse();
  }
  stream_busy_ = true;
  stream_quiet_ = false;
  state_.metrics.CountSent(taken.bytes.size());
  if (http_1_1_) {
    taken.bytes = absl::StrCat(absl::Hex(taken.bytes.size()), "\r\n", taken.bytes, "\r\n");
  }
  SendBytes(std::move(taken.bytes), &Connection::OnStreamSent);
}

void Connection::OnStreamSent() {
  stream_busy_ = false;
  FlushStream();
}

void Connection::FinishResponse() {
  const absl::Duration duration = RealClock().Monotonic() - started_;
  state_.metrics.CountRequest(route_ != nullptr ? route_->pattern : "none", response_.status,
                              duration);
  LOCKSTEP_LOG_DEBUG("http {} {} {}: {} in {:.3f} s", peer_,
                     request_.method == HttpMethod::kPut ? "PUT" : "GET", request_.path,
                     response_.status, absl::ToDoubleSeconds(duration));
  response_ = {};
  request_ = {};
  keep_alive_ ? ReadHead() : Linger();
}

// Closing a socket with bytes unread resets the connection, and may take the answer with it.
void Connection::Linger() {
  if (state_.stopping && !unread_body_) return End();
  heartbeat_.cancel();
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  Arm(kLingerPatience, "");
  transferred_ = 0;
  struct Drain {
    static void Read(const std::shared_ptr<Connection>& self) {
      self->buffer_.resize(kHeadPieceBytes);
      self->socket_.async_read_some(asio::buffer(self->buffer_.data(), self->buffer_.size()),
                                    [self](error_code error, size_t got) {
                                      self->transferred_ += got;
                                      if (self->Failed(error)) return;
                                      if (self->transferred_ > kLingerBytesMax) return self->End();
                                      Read(self);
                                    });
    }
  };
  Drain::Read(shared_from_this());
}

}  // namespace lockstep::coordinator
