// The probe's methods on one channel, with messages that are plain bytes, called as generated code calls them.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

using grpc::ByteBuffer;
using grpc::ClientContext;
using grpc::Status;
using grpc::StatusCode;
using grpc::internal::RpcMethod;

constexpr int kLongestSeconds = 200;
constexpr char kCollect[] = "/tandemmq.test.Probe/Collect";
constexpr char kConverse[] = "/tandemmq.test.Probe/Converse";
constexpr char kDrip[] = "/tandemmq.test.Probe/Drip";
constexpr char kRepeat[] = "/tandemmq.test.Probe/Repeat";

inline ByteBuffer Packed(const std::string& message) {
  grpc::Slice slice(message);
  return ByteBuffer(&slice, 1);
}

inline std::string Unpacked(const ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.Valid()) return "";
  if (!buffer.DumpToSingleSlice(&slice).ok()) throw std::runtime_error("a message that cannot be read");
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

inline std::string Path(const std::string& method) { return "/tandemmq.test.Probe/" + method; }

inline void Require(bool condition, const std::string& otherwise) {
  if (!condition) throw std::runtime_error(otherwise);
}

inline void Equal(const std::string& actual, const std::string& wanted) {
  Require(actual == wanted, "'" + wanted + "' expected, not '" + actual + "'");
}

inline void Expect(const Status& status, StatusCode code) {
  Require(status.error_code() == code, "status " + std::to_string(code) + " expected, not " +
                                           std::to_string(status.error_code()) + ": " + status.error_message());
}

inline void In(ClientContext* context, int milliseconds) {
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(milliseconds));
}

struct Counters {
  long active = 0, cancelled = 0, dripped = 0;
};

class Probe {
 public:
  explicit Probe(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  Status Call(ClientContext* context, const std::string& method, const std::string& request, std::string* answer) {
    ByteBuffer received;
    std::string path = Path(method);
    RpcMethod rpc(path.c_str(), RpcMethod::NORMAL_RPC, channel_);
    Status status = grpc::internal::BlockingUnaryCall(channel_.get(), rpc, context, Packed(request), &received);
    if (status.ok()) *answer = Unpacked(received);
    return status;
  }

  Status Call(const std::string& method, const std::string& request, std::string* answer) {
    ClientContext context;
    In(&context, kLongestSeconds * 1000);
    return Call(&context, method, request, answer);
  }

  void Echo(const std::string& message) {
    std::string answer;
    Expect(Call("Echo", message, &answer), StatusCode::OK);
    Require(answer == message,
            std::to_string(message.size()) + " bytes came back as " + std::to_string(answer.size()) + " others");
  }

  // `path` must outlive the call.
  std::unique_ptr<grpc::ClientReader<ByteBuffer>> Read(ClientContext* context, const char* path,
                                                       const std::string& request) {
    RpcMethod rpc(path, RpcMethod::SERVER_STREAMING, channel_);
    return std::unique_ptr<grpc::ClientReader<ByteBuffer>>(
        grpc::internal::ClientReaderFactory<ByteBuffer>::Create(channel_.get(), rpc, context, Packed(request)));
  }

  std::unique_ptr<grpc::ClientWriter<ByteBuffer>> Collect(ClientContext* context, ByteBuffer* answer) {
    RpcMethod rpc(kCollect, RpcMethod::CLIENT_STREAMING, channel_);
    return std::unique_ptr<grpc::ClientWriter<ByteBuffer>>(
        grpc::internal::ClientWriterFactory<ByteBuffer>::Create(channel_.get(), rpc, context, answer));
  }

  std::unique_ptr<grpc::ClientReaderWriter<ByteBuffer, ByteBuffer>> Converse(ClientContext* context) {
    RpcMethod rpc(kConverse, RpcMethod::BIDI_STREAMING, channel_);
    return std::unique_ptr<grpc::ClientReaderWriter<ByteBuffer, ByteBuffer>>(
        grpc::internal::ClientReaderWriterFactory<ByteBuffer, ByteBuffer>::Create(channel_.get(), rpc, context));
  }

  Counters Count() {
    std::string answer;
    Expect(Call("Count", "", &answer), StatusCode::OK);
    return {Number(answer, "active"), Number(answer, "cancelled"), Number(answer, "dripped")};
  }

  void Until(const std::function<bool(const Counters&)>& wanted);

 private:
  static long Number(const std::string& json, const std::string& name) {
    return std::stol(json.substr(json.find("\"" + name + "\": ") + name.size() + 4));
  }

  std::shared_ptr<grpc::Channel> channel_;
};
