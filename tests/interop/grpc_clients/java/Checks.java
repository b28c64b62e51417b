import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What is checked. */
final class Checks {
    private static final int MIB = 1 << 20;
    private static final byte[] NOTHING = new byte[0];

    private Checks() {}

    static Map<String, Client.Check> all() {
        Map<String, Client.Check> checks = new LinkedHashMap<>();
        checks.put("unary", probe -> echo(probe, "hello".getBytes()));
        checks.put("empty", probe -> echo(probe, NOTHING));
        checks.put("client_stream", Checks::clientStream);
        checks.put("server_stream", probe -> repeat(probe, 10, 1000));
        checks.put("bidi_stream", Checks::bidiStream);
        checks.put("no_messages", Checks::noMessages);
        checks.put("many_messages", Checks::manyMessages);
        checks.put("large_messages", Checks::largeMessages);
        checks.put("large_stream", Checks::largeStream);
        checks.put("too_large", Checks::tooLarge);
        checks.put("metadata", Checks::metadata);
        checks.put("status", Checks::status);
        checks.put("all_statuses", Checks::allStatuses);
        checks.put("crash", probe -> fails(Status.Code.UNKNOWN, () -> probe.call("Crash", NOTHING)));
        checks.put("unimplemented", probe -> fails(Status.Code.UNIMPLEMENTED, () -> probe.call("Nothing", NOTHING)));
        checks.put("deadline", Checks::deadline);
        checks.put("cancellation", Checks::cancellation);
        checks.put("cancelled_stream", Checks::cancelledStream);
        checks.put("slow_reader", Checks::slowReader);
        checks.put("pipelined", Checks::pipelined);
        checks.put("gzip", probe -> echo(probe.compressed(), "compressible ".repeat(100_000).getBytes()));
        return checks;
    }

    static void refused(Probe probe) throws Exception {
        fails(Status.Code.UNAVAILABLE, () -> probe.call("Echo", NOTHING));
    }

    private static void echo(Probe probe, byte[] message) {
        byte[] answer = probe.call("Echo", message);
        require(Arrays.equals(answer, message), message.length + " bytes came back as " + answer.length + " others");
    }

    private static void clientStream(Probe probe) throws Exception {
        byte[] answer = probe.collect(List.of("a".getBytes(), NOTHING, "ccc".getBytes()));
        equal("a||ccc", new String(answer));
    }

    private static void repeat(Probe probe, int count, int size) {
        byte[] expected = new byte[size];
        Arrays.fill(expected, (byte) 'r');
        int received = 0;
        Iterator<byte[]> answers = probe.serverStream("Repeat", count + ":" + size);
        while (answers.hasNext()) {
            require(Arrays.equals(answers.next(), expected), "answer " + received + " is another");
            received++;
        }
        equal(count, received);
    }

    private static void bidiStream(Probe probe) throws Exception {
        Probe.Answers answers = new Probe.Answers();
        StreamObserver<byte[]> requests = probe.converse(answers, probe.soon());
        for (int at = 0; at < 100; at++) {
            requests.onNext(("message " + at).getBytes());
            equal("MESSAGE " + at, new String(answers.next()));
        }
        requests.onCompleted();
        require(answers.next() == null, "more answers than requests");
    }

    private static void noMessages(Probe probe) throws Exception {
        equal(0, probe.collect(List.of()).length);
        repeat(probe, 0, 0);
    }

    private static void manyMessages(Probe probe) throws Exception {
        List<String> texts = IntStream.range(0, 10_000).mapToObj(Integer::toString).toList();
        byte[] answer = probe.collect(texts.stream().map(String::getBytes).toList());
        require(String.join("|", texts).equals(new String(answer)), answer.length + " bytes collected");
        repeat(probe, 10_000, 16);
    }

    private static void largeMessages(Probe probe) {
        byte[] message = new byte[7 * MIB];
        for (int at = 0; at < message.length; at++) {
            message[at] = (byte) (at * 7 >> 3);
        }
        echo(probe, message);
    }

    private static void largeStream(Probe probe) throws Exception {
        Probe.Answers answers = new Probe.Answers();
        StreamObserver<byte[]> requests = probe.converse(answers, probe.soon());
        byte[] message = new byte[MIB];
        for (char letter = 'a'; letter < 'q'; letter++) {
            byte[] copy = message.clone();
            Arrays.fill(copy, (byte) letter);
            requests.onNext(copy);
        }
        requests.onCompleted();
        for (char letter = 'A'; letter < 'Q'; letter++) {
            Arrays.fill(message, (byte) letter);
            require(Arrays.equals(answers.next(), message), "answer " + letter + " is another");
        }
        require(answers.next() == null, "more answers than requests");
    }

    private static void tooLarge(Probe probe) throws Exception {
        fails(Status.Code.RESOURCE_EXHAUSTED, () -> probe.call("Echo", new byte[9 * MIB]));
        echo(probe, "hello".getBytes());
    }

    private static Metadata.Key<String> text(String name) {
        return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
    }

    private static Metadata.Key<byte[]> bytes(String name) {
        return Metadata.Key.of(name, Metadata.BINARY_BYTE_MARSHALLER);
    }

    private static void metadata(Probe probe) {
        Metadata sent = new Metadata();
        sent.put(text("x-plain"), "two words, ~!@");
        sent.put(text("x-several"), "one");
        sent.put(text("x-several"), "two");
        sent.put(text("x-long"), "0123456789".repeat(300));
        sent.put(bytes("x-bytes-bin"), new byte[] {0, 1, 44, -2, -1});
        sent.put(bytes("x-empty-bin"), NOTHING);
        AtomicReference<Metadata> initial = new AtomicReference<>();
        AtomicReference<Metadata> trailing = new AtomicReference<>();
        String peer = new String(probe.with(sent, initial, trailing).call("Mirror", NOTHING));
        require(peer.matches("ipv4:127\\.0\\.0\\.1:\\d+|ipv6:(%5B|\\[)::1(%5D|\\]):\\d+"), peer);
        equal("first", initial.get().get(text("x-initial")));
        equal("[0, -2]", Arrays.toString(initial.get().get(bytes("x-initial-bin"))));
        for (String name : List.of("x-plain", "x-several", "x-long")) {
            equal(values(sent, text(name)), values(trailing.get(), text(name)));
        }
        equal("[0, 1, 44, -2, -1]", Arrays.toString(trailing.get().get(bytes("x-bytes-bin"))));
        equal("[]", Arrays.toString(trailing.get().get(bytes("x-empty-bin"))));
    }

    private static List<String> values(Metadata metadata, Metadata.Key<String> key) {
        List<String> values = new ArrayList<>();
        metadata.getAll(key).forEach(values::add);
        return values;
    }

    private static void status(Probe probe) throws Exception {
        StatusRuntimeException failure =
                fails(Status.Code.NOT_FOUND, () -> probe.call("Fail", "NOT_FOUND".getBytes()));
        equal("said so \u00e9%", failure.getStatus().getDescription());
        equal("yes", failure.getTrailers().get(text("x-failed")));
        equal("[0, 1, -1]", Arrays.toString(failure.getTrailers().get(bytes("x-failed-bin"))));
    }

    private static void allStatuses(Probe probe) throws Exception {
        for (Status.Code code : Status.Code.values()) {
            if (code != Status.Code.OK) {
                fails(code, () -> probe.call("Fail", code.name().getBytes()));
            }
        }
    }

    private static void deadline(Probe probe) throws Exception {
        Probe.Answers answers = new Probe.Answers();
        probe.converse(answers, probe.within(200));
        ClientCall<byte[], byte[]> call =
                probe.channel.newCall(Probe.method(MethodType.UNARY, "Wait"), probe.within(200));
        Future<byte[]> waiting = ClientCalls.futureUnaryCall(call, NOTHING);
        fails(Status.Code.DEADLINE_EXCEEDED, waiting::get);
        fails(Status.Code.DEADLINE_EXCEEDED, answers::next);
        until(probe, now -> now.active == 0);
    }

    private static void cancellation(Probe probe) throws Exception {
        Probe.Counters before = probe.count();
        ClientCall<byte[], byte[]> call = probe.channel.newCall(Probe.method(MethodType.UNARY, "Wait"), probe.soon());
        Probe.Answers answers = new Probe.Answers();
        ClientCalls.asyncUnaryCall(call, NOTHING, answers);
        until(probe, now -> now.active == 1);
        call.cancel("no longer wanted", null);
        fails(Status.Code.CANCELLED, answers::next);
        until(probe, now -> now.active == 0 && now.cancelled == before.cancelled + 1);
    }

    private static void cancelledStream(Probe probe) throws Exception {
        Probe.Answers answers = new Probe.Answers();
        ClientCall<byte[], byte[]> call =
                probe.channel.newCall(Probe.method(MethodType.SERVER_STREAMING, "Drip"), probe.soon());
        ClientCalls.asyncServerStreamingCall(call, NOTHING, answers);
        for (int at = 0; at < 1000; at++) {
            equal(1024, answers.next().length);
        }
        call.cancel("no longer wanted", null);
        until(probe, now -> now.active == 0);
    }

    /** A stream that nobody reads on costs the server a bounded number of bytes, and its neighbours nothing. */
    private static void slowReader(Probe probe) throws Exception {
        long before = probe.count().dripped;
        Probe.Answers answers = probe.openDrip();
        equal(1024, answers.next().length);
        for (int at = 0; at < 300; at++) {
            echo(probe, new byte[10_000]);
        }
        long dripped = probe.count().dripped - before;
        require(dripped < 32 << 10, dripped + " KiB for a stream that nobody reads");
        answers.requests.cancel("no longer wanted", null);
        until(probe, now -> now.active == 0);
    }

    private static void pipelined(Probe probe) throws Exception {
        for (int round = 0; round < 10; round++) {
            String prefix = "call " + round + " ";
            List<Future<byte[]>> answers = IntStream.range(0, 1000)
                    .mapToObj(at -> {
                        ClientCall<byte[], byte[]> call =
                                probe.channel.newCall(Probe.method(MethodType.UNARY, "Echo"), probe.soon());
                        return (Future<byte[]>) ClientCalls.futureUnaryCall(call, (prefix + at).getBytes());
                    })
                    .collect(Collectors.toList());
            for (int at = 0; at < answers.size(); at++) {
                equal(prefix + at, new String(answers.get(at).get(Probe.LONGEST_SECONDS, TimeUnit.SECONDS)));
            }
        }
    }

    // -- what they are made of

    private static void until(Probe probe, Predicate<Probe.Counters> wanted) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(100);
        for (Probe.Counters now = probe.count(); !wanted.test(now); now = probe.count()) {
            require(System.nanoTime() < end, "the server's counters stay: active " + now.active);
            Thread.sleep(5);
        }
    }

    private static StatusRuntimeException fails(Status.Code code, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (Exception failure) {
            Throwable cause = failure instanceof StatusRuntimeException ? failure : failure.getCause();
            if (cause instanceof StatusRuntimeException status && status.getStatus().getCode() == code) {
                return status;
            }
            throw failure;
        }
        throw new AssertionError(code + " expected, not an answer");
    }

    private static void equal(Object expected, Object actual) {
        require(expected.equals(actual), "'" + expected + "' expected, not '" + actual + "'");
    }

    private static void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }
}
