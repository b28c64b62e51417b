import io.grpc.CallOptions;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.TlsChannelCredentials;
import java.io.File;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A client in Java: every check against the probe service; one JSON line for each.
 *
 * <p>Client TARGET [--ca FILE [--cert FILE --key FILE]] [--quick | --refused]
 */
final class Client {
    private static final List<String> QUICK =
            List.of("unary", "client_stream", "server_stream", "bidi_stream", "large_messages", "status");

    interface Check {
        void run(Probe probe) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        List<String> flags = Arrays.asList(arguments);
        ManagedChannel channel = Grpc.newChannelBuilder(arguments[0], credentials(flags))
                .maxInboundMessageSize(16 << 20)
                .build();
        Probe probe = new Probe(channel, CallOptions.DEFAULT.withMaxInboundMessageSize(16 << 20));
        Map<String, Check> checks = Checks.all();
        if (flags.contains("--refused")) {
            checks = new LinkedHashMap<>(Map.of("refused", Checks::refused));
        } else if (flags.contains("--quick")) {
            checks.keySet().retainAll(QUICK);
        }
        checks.forEach((name, check) -> report(name, check, probe));
        channel.shutdownNow();
        System.exit(0);
    }

    private static ChannelCredentials credentials(List<String> flags) throws Exception {
        if (!flags.contains("--ca")) {
            return InsecureChannelCredentials.create();
        }
        TlsChannelCredentials.Builder builder = TlsChannelCredentials.newBuilder().trustManager(file(flags, "--ca"));
        if (flags.contains("--cert")) {
            builder.keyManager(file(flags, "--cert"), file(flags, "--key"));
        }
        return builder.build();
    }

    private static File file(List<String> flags, String flag) {
        return new File(flags.get(flags.indexOf(flag) + 1));
    }

    private static void report(String name, Check check, Probe probe) {
        long begin = System.nanoTime();
        String detail;
        boolean ok = false;
        try {
            check.run(probe);
            ok = true;
            detail = (System.nanoTime() - begin) / 1_000_000 + " ms";
        } catch (Throwable failure) {
            detail = failure.toString().replaceAll("[\"\\\\\\p{Cntrl}]", "'");
        }
        System.out.printf("{\"check\": \"%s\", \"ok\": %b, \"detail\": \"%s\"}%n", name, ok, detail);
    }
}
