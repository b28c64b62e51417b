// A client in C++: every check against the probe service; one JSON line for each.
//
//   client TARGET [--ca FILE [--cert FILE --key FILE]] [--quick | --refused]
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <thread>
#include <vector>

#include "probe.h"

namespace {

using Clock = std::chrono::steady_clock;

void Collects(Probe& probe, const std::vector<std::string>& messages) {
  ClientContext context;
  ByteBuffer answer;
  auto writer = probe.Collect(&context, &answer);
  std::string wanted;
  for (const std::string& message : messages) {
    Require(writer->Write(Packed(message)), "the stream of requests broke");
    wanted += (&message == &messages.front() ? "" : "|") + message;
  }
  writer->WritesDone();
  Expect(writer->Finish(), StatusCode::OK);
  Require(Unpacked(answer) == wanted, std::to_string(answer.Length()) + " bytes collected");
}

void Repeats(Probe& probe, int count, int size) {
  ClientContext context;
  auto reader = probe.Read(&context, kRepeat, std::to_string(count) + ":" + std::to_string(size));
  ByteBuffer message;
  int received = 0;
  for (; reader->Read(&message); ++received) Equal(Unpacked(message), std::string(size, 'r'));
  Expect(reader->Finish(), StatusCode::OK);
  Require(received == count, std::to_string(received) + " answers");
}

void BidiStream(Probe& probe) {
  ClientContext context;
  auto stream = probe.Converse(&context);
  ByteBuffer message;
  for (int at = 0; at < 100; ++at) {
    Require(stream->Write(Packed("message " + std::to_string(at))), "the stream of requests broke");
    Require(stream->Read(&message), "no answer");
    Equal(Unpacked(message), "MESSAGE " + std::to_string(at));
  }
  stream->WritesDone();
  Require(!stream->Read(&message), "more answers than requests");
  Expect(stream->Finish(), StatusCode::OK);
}

void ManyMessages(Probe& probe) {
  std::vector<std::string> messages;
  for (int at = 0; at < 10000; ++at) messages.push_back(std::to_string(at));
  Collects(probe, messages);
  Repeats(probe, 10000, 16);
}

void LargeMessages(Probe& probe) {
  std::string message(7 << 20, 0);
  for (size_t at = 0; at < message.size(); ++at) message[at] = static_cast<char>(at * 7 >> 3);
  probe.Echo(message);
}

void LargeStream(Probe& probe) {
  ClientContext context;
  auto stream = probe.Converse(&context);
  std::thread writing([&stream] {
    for (char letter = 'a'; letter < 'q'; ++letter) stream->Write(Packed(std::string(1 << 20, letter)));
    stream->WritesDone();
  });
  ByteBuffer message;
  std::string received;
  while (stream->Read(&message)) {
    std::string answer = Unpacked(message);
    received += answer == std::string(1 << 20, answer[0]) ? answer[0] : '?';
  }
  writing.join();
  Expect(stream->Finish(), StatusCode::OK);
  Equal(received, "ABCDEFGHIJKLMNOP");
}

void TooLarge(Probe& probe) {
  std::string answer;
  Expect(probe.Call("Echo", std::string(9 << 20, 'x'), &answer), StatusCode::RESOURCE_EXHAUSTED);
  probe.Echo("hello");
}

using Received = std::multimap<grpc::string_ref, grpc::string_ref>;

std::multiset<std::string> Values(const Received& metadata, const std::string& key) {
  std::multiset<std::string> values;
  auto range = metadata.equal_range(key);
  for (auto at = range.first; at != range.second; ++at) values.emplace(at->second.data(), at->second.size());
  return values;
}

void Metadata(Probe& probe) {
  std::multimap<std::string, std::string> sent = {
      {"x-plain", "two words, ~!@"}, {"x-several", "one"},          {"x-several", "two"},
      {"x-empty-bin", ""},           {"x-long", std::string(3000, '7')}, {"x-bytes-bin", std::string("\0\1,\xfe\xff", 5)}};
  ClientContext context;
  for (const auto& field : sent) context.AddMetadata(field.first, field.second);
  std::string answer;
  Expect(probe.Call(&context, "Mirror", "", &answer), StatusCode::OK);
  static const std::regex peer(R"(ipv4:127\.0\.0\.1:\d+|ipv6:(%5B|\[)::1(%5D|\]):\d+|unix:.*)");
  Require(std::regex_match(answer, peer), "peer() is " + answer);
  const Received& initial = context.GetServerInitialMetadata();
  Require(Values(initial, "x-initial") == std::multiset<std::string>{"first"}, "x-initial");
  Require(Values(initial, "x-initial-bin") == std::multiset<std::string>{std::string("\0\xfe", 2)}, "x-initial-bin");
  for (const auto& field : sent) {
    std::multiset<std::string> wanted;
    auto range = sent.equal_range(field.first);
    for (auto at = range.first; at != range.second; ++at) wanted.insert(at->second);
    Require(Values(context.GetServerTrailingMetadata(), field.first) == wanted, field.first);
  }
}

void Failure(Probe& probe) {
  ClientContext context;
  std::string answer;
  Status status = probe.Call(&context, "Fail", "NOT_FOUND", &answer);
  Expect(status, StatusCode::NOT_FOUND);
  Equal(status.error_message(), "said so \xc3\xa9%");
  const Received& trailing = context.GetServerTrailingMetadata();
  Require(Values(trailing, "x-failed") == std::multiset<std::string>{"yes"}, "x-failed");
  Require(Values(trailing, "x-failed-bin") == std::multiset<std::string>{std::string("\0\1\xff", 3)}, "x-failed-bin");
}

void AllStatuses(Probe& probe) {
  const char* names[] = {"CANCELLED",         "UNKNOWN",          "INVALID_ARGUMENT",  "DEADLINE_EXCEEDED",
                         "NOT_FOUND",         "ALREADY_EXISTS",   "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
                         "FAILED_PRECONDITION", "ABORTED",        "OUT_OF_RANGE",      "UNIMPLEMENTED",
                         "INTERNAL",          "UNAVAILABLE",      "DATA_LOSS",         "UNAUTHENTICATED"};
  std::string answer;
  for (int code = 1; code <= 16; ++code) {
    Expect(probe.Call("Fail", names[code - 1], &answer), static_cast<StatusCode>(code));
  }
}

void Deadline(Probe& probe) {
  ClientContext context, streaming;
  In(&context, 200);
  In(&streaming, 200);
  auto stream = probe.Converse(&streaming);
  std::string answer;
  Expect(probe.Call(&context, "Wait", "", &answer), StatusCode::DEADLINE_EXCEEDED);
  ByteBuffer message;
  Require(!stream->Read(&message), "an answer to nothing");
  Expect(stream->Finish(), StatusCode::DEADLINE_EXCEEDED);
  probe.Until([](const Counters& now) { return now.active == 0; });
}

void Cancellation(Probe& probe) {
  Counters before = probe.Count();
  ClientContext context;
  Status status;
  std::thread waiting([&] {
    std::string answer;
    status = probe.Call(&context, "Wait", "", &answer);
  });
  probe.Until([](const Counters& now) { return now.active == 1; });
  context.TryCancel();
  waiting.join();
  Expect(status, StatusCode::CANCELLED);
  probe.Until([&](const Counters& now) { return now.active == 0 && now.cancelled == before.cancelled + 1; });
}

void CancelledStream(Probe& probe) {
  ClientContext context;
  auto reader = probe.Read(&context, kDrip, "");
  ByteBuffer message;
  for (int at = 0; at < 1000; ++at) Require(reader->Read(&message), "no answer");
  context.TryCancel();
  while (reader->Read(&message)) continue;
  Expect(reader->Finish(), StatusCode::CANCELLED);
  probe.Until([](const Counters& now) { return now.active == 0; });
}

// A stream that nobody reads on costs the server a bounded number of bytes, and its neighbours nothing.
void SlowReader(Probe& probe) {
  long before = probe.Count().dripped;
  ClientContext context;
  auto reader = probe.Read(&context, kDrip, "");
  ByteBuffer message;
  Require(reader->Read(&message), "no answer");
  for (int at = 0; at < 300; ++at) probe.Echo(std::string(10000, 'x'));
  long dripped = probe.Count().dripped - before;
  Require(dripped < 32 << 10, std::to_string(dripped) + " KiB for a stream that nobody reads");
  context.TryCancel();
  while (reader->Read(&message)) continue;
  Expect(reader->Finish(), StatusCode::CANCELLED);
  probe.Until([](const Counters& now) { return now.active == 0; });
}

struct Pending {
  ClientContext context;
  ByteBuffer answer;
  Status status;
  std::string text;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

void Pipelined(Probe& probe) {
  constexpr int kCalls = 10000, kInFlight = 1000;
  grpc::GenericStub stub(probe.channel());
  grpc::CompletionQueue queue;
  int started = 0;
  auto start = [&] {
    auto* call = new Pending;
    In(&call->context, kLongestSeconds * 1000);
    call->text = "call " + std::to_string(started++);
    call->reader = stub.PrepareUnaryCall(&call->context, Path("Echo"), Packed(call->text), &queue);
    call->reader->StartCall();
    call->reader->Finish(&call->answer, &call->status, call);
  };
  while (started < kInFlight) start();
  std::string failure;
  for (int ended = 0; ended < kCalls; ++ended) {
    void* tag;
    bool ok;
    queue.Next(&tag, &ok);
    std::unique_ptr<Pending> call(static_cast<Pending*>(tag));
    if (!call->status.ok()) failure = call->status.error_message();
    else if (Unpacked(call->answer) != call->text) failure = "another's answer: " + Unpacked(call->answer);
    if (started < kCalls) start();
  }
  Equal(failure, "");
}

void Gzip(Probe& probe) {
  std::string message, answer;
  for (int at = 0; at < 100000; ++at) message += "compressible ";
  ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  Expect(probe.Call(&context, "Echo", message, &answer), StatusCode::OK);
  Require(answer == message, std::to_string(answer.size()) + " bytes came back");
}

void Fails(Probe& probe, const std::string& method, StatusCode code) {
  std::string answer;
  Expect(probe.Call(method, "", &answer), code);
}

struct Check {
  std::string name;
  bool quick;
  std::function<void(Probe&)> run;
};

const std::vector<Check> kChecks = {
    {"unary", true, [](Probe& probe) { probe.Echo("hello"); }},
    {"empty", false, [](Probe& probe) { probe.Echo(""); }},
    {"client_stream", true, [](Probe& probe) { Collects(probe, {"a", "", "ccc"}); }},
    {"server_stream", true, [](Probe& probe) { Repeats(probe, 10, 1000); }},
    {"bidi_stream", true, BidiStream},
    {"no_messages", false, [](Probe& probe) { Collects(probe, {}), Repeats(probe, 0, 0); }},
    {"many_messages", false, ManyMessages},
    {"large_messages", true, LargeMessages},
    {"large_stream", false, LargeStream},
    {"too_large", false, TooLarge},
    {"metadata", false, Metadata},
    {"status", true, Failure},
    {"all_statuses", false, AllStatuses},
    {"crash", false, [](Probe& probe) { Fails(probe, "Crash", StatusCode::UNKNOWN); }},
    {"unimplemented", false, [](Probe& probe) { Fails(probe, "Nothing", StatusCode::UNIMPLEMENTED); }},
    {"deadline", false, Deadline},
    {"cancellation", false, Cancellation},
    {"cancelled_stream", false, CancelledStream},
    {"slow_reader", false, SlowReader},
    {"pipelined", false, Pipelined},
    {"gzip", false, Gzip},
};

std::string Contents(const std::string& file) {
  std::ifstream stream(file);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

bool Report(const Check& check, Probe& probe) {
  auto begin = Clock::now();
  std::string failure;
  try {
    check.run(probe);
  } catch (const std::exception& error) {
    failure = std::string("failed: ") + error.what();
    for (char& letter : failure) letter = letter == '"' || letter == '\\' || letter < ' ' ? '\'' : letter;
  }
  auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
  std::string detail = failure.empty() ? std::to_string(spent) + " ms" : failure;
  std::printf("{\"check\": \"%s\", \"ok\": %s, \"detail\": \"%s\"}\n", check.name.c_str(),
              failure.empty() ? "true" : "false", detail.c_str());
  std::fflush(stdout);
  return failure.empty();
}

}  // namespace

void Probe::Until(const std::function<bool(const Counters&)>& wanted) {
  auto end = Clock::now() + std::chrono::seconds(100);
  for (Counters now = Count(); !wanted(now); now = Count()) {
    Require(Clock::now() < end, "the server's counters stay: active " + std::to_string(now.active));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int main(int count, char** arguments) {
  std::map<std::string, std::string> options;
  for (int at = 2; at < count; ++at) {
    std::string name = arguments[at];
    options[name] = name == "--quick" || name == "--refused" ? "yes" : arguments[++at];
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.count("--ca")) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = Contents(options["--ca"]);
    if (options.count("--cert")) {
      tls.pem_cert_chain = Contents(options["--cert"]);
      tls.pem_private_key = Contents(options["--key"]);
    }
    credentials = grpc::SslCredentials(tls);
  }
  grpc::ChannelArguments limits;
  limits.SetMaxReceiveMessageSize(16 << 20);
  limits.SetMaxSendMessageSize(16 << 20);
  Probe probe(grpc::CreateCustomChannel(arguments[1], credentials, limits));
  if (options.count("--refused")) {
    Report({"refused", true, [](Probe& probe) { Fails(probe, "Echo", StatusCode::UNAVAILABLE); }}, probe);
    return 0;
  }
  for (const Check& check : kChecks) {
    if (check.quick || !options.count("--quick")) Report(check, probe);
  }
  return 0;
}
