import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ClientResponseObserver;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The probe's methods on one channel, with messages that are plain bytes. */
final class Probe {
    static final int LONGEST_SECONDS = 200;
    private static final Pattern NUMBER = Pattern.compile("\"(active|cancelled|dripped)\": (\\d+)");

    final Channel channel;
    private final CallOptions options;

    Probe(Channel channel, CallOptions options) {
        this.channel = channel;
        this.options = options;
    }

    /** The server's counters. */
    static final class Counters {
        long active;
        long cancelled;
        long dripped;
    }

    enum Bytes implements MethodDescriptor.Marshaller<byte[]> {
        MARSHALLER;

        @Override
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        }
    }

    static MethodDescriptor<byte[], byte[]> method(MethodType type, String name) {
        return MethodDescriptor.newBuilder(Bytes.MARSHALLER, Bytes.MARSHALLER)
                .setType(type)
                .setFullMethodName("tandemmq.test.Probe/" + name)
                .build();
    }

    CallOptions within(long milliseconds) {
        return options.withDeadlineAfter(milliseconds, TimeUnit.MILLISECONDS);
    }

    CallOptions soon() {
        return within(TimeUnit.SECONDS.toMillis(LONGEST_SECONDS));
    }

    Probe compressed() {
        return new Probe(channel, options.withCompression("gzip"));
    }

    /** This probe with metadata for the server, and references that take what it answers. */
    Probe with(Metadata sent, AtomicReference<Metadata> initial, AtomicReference<Metadata> trailing) {
        Channel wrapped = ClientInterceptors.intercept(
                channel,
                MetadataUtils.newAttachHeadersInterceptor(sent),
                MetadataUtils.newCaptureMetadataInterceptor(initial, trailing));
        return new Probe(wrapped, options);
    }

    byte[] call(String name, byte[] request) {
        return ClientCalls.blockingUnaryCall(channel, method(MethodType.UNARY, name), soon(), request);
    }

    Iterator<byte[]> serverStream(String name, String request) {
        MethodDescriptor<byte[], byte[]> method = method(MethodType.SERVER_STREAMING, name);
        return ClientCalls.blockingServerStreamingCall(channel, method, soon(), request.getBytes());
    }

    byte[] collect(List<byte[]> messages) throws InterruptedException {
        Answers answers = new Answers();
        ClientCall<byte[], byte[]> call = channel.newCall(method(MethodType.CLIENT_STREAMING, "Collect"), soon());
        StreamObserver<byte[]> requests = ClientCalls.asyncClientStreamingCall(call, answers);
        messages.forEach(requests::onNext);
        requests.onCompleted();
        return answers.next();
    }

    StreamObserver<byte[]> converse(Answers answers, CallOptions callOptions) {
        ClientCall<byte[], byte[]> call = channel.newCall(method(MethodType.BIDI_STREAMING, "Converse"), callOptions);
        return ClientCalls.asyncBidiStreamingCall(call, answers);
    }

    /** A Drip of which nothing more than the first answer is read. */
    Answers openDrip() {
        Answers answers = new Answers();
        answers.readsAll = false;
        ClientCall<byte[], byte[]> call = channel.newCall(method(MethodType.SERVER_STREAMING, "Drip"), soon());
        ClientCalls.asyncServerStreamingCall(call, new byte[0], answers);
        return answers;
    }

    Counters count() {
        Counters counters = new Counters();
        Matcher found = NUMBER.matcher(new String(call("Count", new byte[0])));
        while (found.find()) {
            long value = Long.parseLong(found.group(2));
            switch (found.group(1)) {
                case "active" -> counters.active = value;
                case "cancelled" -> counters.cancelled = value;
                default -> counters.dripped = value;
            }
        }
        return counters;
    }

    /** What a stream answered, in order; a status stands behind the last answer. */
    static final class Answers implements ClientResponseObserver<byte[], byte[]> {
        private static final Object END = new Object();
        private final BlockingQueue<Object> queue = new LinkedBlockingQueue<>();
        ClientCallStreamObserver<byte[]> requests;
        boolean readsAll = true;

        @Override
        public void beforeStart(ClientCallStreamObserver<byte[]> stream) {
            requests = stream;
            if (!readsAll) {
                stream.disableAutoRequestWithInitial(1);
            }
        }

        @Override
        public void onNext(byte[] message) {
            queue.add(message);
        }

        @Override
        public void onError(Throwable failure) {
            queue.add(failure);
        }

        @Override
        public void onCompleted() {
            queue.add(END);
        }

        /** The next answer; null behind the last. */
        byte[] next() throws InterruptedException {
            Object item = queue.poll(LONGEST_SECONDS, TimeUnit.SECONDS);
            if (item instanceof RuntimeException failure) {
                throw failure;
            }
            if (item == null) {
                throw new AssertionError("no answer");
            }
            return item == END ? null : (byte[]) item;
        }
    }
}
