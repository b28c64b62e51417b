import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientConfigurationBuilder;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.StaticSessionCredentialsProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionChecker;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** The official Java client: `Client HOST:PORT FEATURE TOPIC GROUP`; prints OK when the feature does what it should. */
public final class Client {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static String endpoint;
    private static String topic;
    private static String group;

    public static void main(String[] arguments) throws Exception {
        endpoint = arguments[0];
        topic = arguments[2];
        group = arguments[3];
        try {
            run(arguments[1]);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.err.flush();
            Runtime.getRuntime().halt(1); // its clients have threads that would go on for ever
        }
        System.out.println("OK");
        System.out.flush();
        Runtime.getRuntime().halt(0); // its clients would take seconds to end
    }

    private static void run(String feature) throws Exception {
        switch (feature) {
            case "send": send(producer(null), "hello"); break;
            case "simple_consumer": simpleConsumer(); break;
            case "tag_filter": tagFilter(); break;
            case "redelivery": redelivery(); break;
            case "push_consumer": pushed(20, 0, false); break;
            case "push_retry": pushed(1, 1, false); break;
            case "dead_letter": deadLetter(); break;
            case "fifo": pushed(10, 0, true); break;
            case "delay": delay(); break;
            case "recall": recall(); break;
            case "transaction": transaction(); break;
            case "orphan": orphan(); break;
            case "priority": priority(); break;
            case "outage": outage(); break;
            case "flow": flow(); break;
            case "wrong_credentials": wrongCredentials(); break;
            default: throw new IllegalArgumentException(feature);
        }
    }

    private static ClientConfiguration configuration() {
        ClientConfigurationBuilder builder = ClientConfiguration.newBuilder().setEndpoints(endpoint);
        String key = System.getenv("CLIENT_KEY");
        if (key != null) {
            builder.setCredentialProvider(new StaticSessionCredentialsProvider(key, System.getenv("CLIENT_SECRET")));
        }
        if (System.getenv("CLIENT_NAMESPACE") != null) {
            builder.setNamespace(System.getenv("CLIENT_NAMESPACE"));
        }
        return builder.build();
    }

    private static Producer producer(TransactionChecker checker) throws Exception {
        var builder = PROVIDER.newProducerBuilder().setClientConfiguration(configuration()).setTopics(topic);
        return (checker == null ? builder : builder.setTransactionChecker(checker)).build();
    }

    private static MessageBuilder text(String body) {
        return PROVIDER.newMessageBuilder().setTopic(topic).setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    private static void send(Producer producer, String body) throws Exception {
        ensure(producer.send(text(body).build()).getMessageId() != null, "no id");
    }

    private static SimpleConsumer simple(FilterExpression filter) throws Exception {
        return PROVIDER.newSimpleConsumerBuilder().setClientConfiguration(configuration()).setConsumerGroup(group)
            .setAwaitDuration(Duration.ofSeconds(4)).setSubscriptionExpressions(Map.of(topic, filter)).build();
    }

    private static List<MessageView> take(SimpleConsumer consumer, int count, boolean acknowledge) throws Exception {
        List<MessageView> found = new ArrayList<>();
        for (long end = System.nanoTime() + 60_000_000_000L; found.size() < count && System.nanoTime() < end;) {
            for (MessageView one : consumer.receive(16, Duration.ofSeconds(20))) {
                found.add(one);
                if (acknowledge) {
                    consumer.ack(one);
                }
            }
        }
        ensure(found.size() == count, found.size() + " of " + count);
        return found;
    }

    private static String bodies(List<MessageView> found) {
        return found.stream().map(Client::body).sorted().collect(Collectors.joining(" "));
    }

    private static String body(MessageView one) {
        ByteBuffer buffer = one.getBody();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static void simpleConsumer() throws Exception {
        Producer producer = producer(null);
        for (int i = 0; i < 5; i++) {
            producer.send(text("m" + i).setTag("t").setKeys("k").addProperty("mine", "yes").build());
        }
        List<MessageView> found = take(simple(FilterExpression.SUB_ALL), 5, true);
        ensure(bodies(found).equals("m0 m1 m2 m3 m4"), bodies(found));
        ensure("yes".equals(found.get(0).getProperties().get("mine")), "no property");
    }

    private static void tagFilter() throws Exception {
        Producer producer = producer(null);
        for (String tag : List.of("a", "b", "c")) {
            producer.send(text(tag).setTag(tag).build());
        }
        String found = bodies(take(simple(new FilterExpression("a || c")), 2, true));
        ensure(found.equals("a c"), found);
    }

    private static void redelivery() throws Exception {
        send(producer(null), "again");
        SimpleConsumer consumer = simple(FilterExpression.SUB_ALL);
        MessageView first = take(consumer, 1, false).get(0);
        long begun = System.nanoTime();
        consumer.changeInvisibleDuration(first, Duration.ofSeconds(2));
        MessageView second = take(consumer, 1, true).get(0);
        ensure(second.getDeliveryAttempt() == 2, "attempt " + second.getDeliveryAttempt());
        long took = (System.nanoTime() - begun) / 1_000_000;
        ensure(took > 1_500 && took < 4_500, took + " ms");
    }

    private static void pushed(int count, int fails, boolean ordered) throws Exception {
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        List<Integer> attempts = Collections.synchronizedList(new ArrayList<>());
        PROVIDER.newPushConsumerBuilder().setClientConfiguration(configuration()).setConsumerGroup(group)
            .setSubscriptionExpressions(Map.of(topic, FilterExpression.SUB_ALL))
            .setMessageListener(one -> {
                attempts.add(one.getDeliveryAttempt());
                seen.add(body(one));
                return seen.size() <= fails ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
            }).build();
        Producer producer = producer(null);
        for (int i = 0; i < count; i++) {
            MessageBuilder message = text(String.valueOf(i));
            producer.send((ordered ? message.setMessageGroup("one") : message).build());
        }
        until(() -> seen.size() >= count + fails, seen.toString());
        ensure(attempts.get(fails) == fails + 1, attempts.toString());
        if (ordered) {
            ensure(String.join("", seen).equals("0123456789"), seen.toString());
        }
    }

    /** The group retries once. The topic of dead letters comes with the first one. */
    private static void deadLetter() throws Exception {
        List<Integer> attempts = Collections.synchronizedList(new ArrayList<>());
        PROVIDER.newPushConsumerBuilder().setClientConfiguration(configuration()).setConsumerGroup(group)
            .setSubscriptionExpressions(Map.of(topic, FilterExpression.SUB_ALL))
            .setMessageListener(one -> {
                attempts.add(one.getDeliveryAttempt());
                return ConsumeResult.FAILURE;
            }).build();
        producer(null).send(text("dead").setTag("t").setKeys("k").build());
        topic = "%DLQ%" + group;
        group += "-letters";
        List<SimpleConsumer> opened = new ArrayList<>();
        until(() -> {
            try {
                return opened.add(simple(FilterExpression.SUB_ALL));
            } catch (Exception absent) {
                return false;
            }
        }, "there are no dead letters");
        MessageView found = take(opened.get(0), 1, true).get(0);
        ensure(body(found).equals("dead") && found.getTag().get().equals("t"), found.toString());
        ensure(found.getTopic().equals(topic), found.getTopic());
        ensure(attempts.equals(List.of(1, 2)), attempts.toString());
    }

    private static void delay() throws Exception {
        long due = System.currentTimeMillis() + 3_000;
        producer(null).send(text("later").setDeliveryTimestamp(due).build());
        take(simple(FilterExpression.SUB_ALL), 1, true);
        long late = System.currentTimeMillis() - due;
        ensure(late > -100 && late < 3_000, late + " ms");
    }

    /** The topic is of type PRIORITY: somebody has made it. */
    private static void priority() throws Exception {
        Producer producer = producer(null);
        for (int priority : new int[] {1, 3, 0, 2}) {
            producer.send(text("p" + priority).setPriority(priority).build());
        }
        List<MessageView> found = take(simple(FilterExpression.SUB_ALL), 4, true);
        String order = found.stream().map(Client::body).collect(Collectors.joining(" "));
        ensure(order.equals("p3 p2 p1 p0"), order);
    }

    private static void recall() throws Exception {
        Producer producer = producer(null);
        long now = System.currentTimeMillis();
        var receipt = producer.send(text("never").setDeliveryTimestamp(now + 6_000).build());
        producer.recallMessage(topic, receipt.getRecallHandle());
        producer.send(text("marker").setDeliveryTimestamp(now + 8_000).build());
        String found = bodies(take(simple(FilterExpression.SUB_ALL), 1, true));
        ensure(found.equals("marker"), found);
    }

    private static void transaction() throws Exception {
        Producer producer = producer(one -> TransactionResolution.UNKNOWN);
        Transaction committed = producer.beginTransaction();
        Transaction rolledBack = producer.beginTransaction();
        producer.send(text("committed").build(), committed);
        producer.send(text("rolled back").build(), rolledBack);
        committed.commit();
        rolledBack.rollback();
        String found = bodies(take(simple(FilterExpression.SUB_ALL), 1, true));
        ensure(found.equals("committed"), found);
    }

    private static void orphan() throws Exception {
        Producer producer = producer(one -> TransactionResolution.COMMIT);
        producer.send(text("orphan").build(), producer.beginTransaction());
        String found = bodies(take(simple(FilterExpression.SUB_ALL), 1, true));
        ensure(found.equals("orphan"), found);
    }

    /** Sends and consumes while the broker is killed and comes back: an application tries a send again that failed. */
    private static void outage() throws Exception {
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        PROVIDER.newPushConsumerBuilder().setClientConfiguration(configuration()).setConsumerGroup(group)
            .setSubscriptionExpressions(Map.of(topic, FilterExpression.SUB_ALL))
            .setMessageListener(one -> {
                seen.add(body(one));
                return ConsumeResult.SUCCESS;
            }).build();
        Producer producer = producer(null);
        int failed = 0;
        for (int i = 0; i < 60; i++) {
            long end = System.nanoTime() + 60_000_000_000L;
            for (boolean sent = false; !sent;) {
                try {
                    send(producer, "o" + i);
                    sent = true;
                } catch (Exception refused) {
                    failed++;
                    ensure(System.nanoTime() < end, "the client does not recover: " + refused);
                    Thread.sleep(200);
                }
            }
            System.out.println("SENT " + i);
            Thread.sleep(100);
        }
        until(() -> List.copyOf(seen).stream().distinct().count() == 60, "not all came");
        System.out.println(failed + " sends failed, " + (seen.size() - 60) + " messages came again");
    }

    /** Sends FLOW_BYTES a second for FLOW_SECONDS and consumes them meanwhile: each must come, no send may fail. */
    private static void flow() throws Exception {
        int size = 64 << 10;
        double each = size / Double.parseDouble(System.getenv("FLOW_BYTES"));
        int count = (int) (Double.parseDouble(System.getenv("FLOW_SECONDS")) / each);
        Map<Integer, Boolean> seen = new ConcurrentHashMap<>();
        AtomicInteger given = new AtomicInteger();
        SimpleConsumer consumer = simple(FilterExpression.SUB_ALL);
        List<CompletableFuture<Void>> workers = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            workers.add(worker(() -> {
                while (seen.size() < count) {
                    for (MessageView one : consumer.receive(32, Duration.ofSeconds(60))) {
                        seen.put(one.getBody().getInt(), true);
                        given.incrementAndGet();
                        consumer.ack(one);
                    }
                }
                return null;
            }));
        }
        Producer producer = producer(null);
        AtomicInteger next = new AtomicInteger();
        long begun = System.nanoTime();
        for (int i = 0; i < 8; i++) {
            workers.add(worker(() -> {
                for (int number = next.getAndIncrement(); number < count; number = next.getAndIncrement()) {
                    long due = begun + (long) (number * each * 1e9);
                    Thread.sleep(Math.max(0, (due - System.nanoTime()) / 1_000_000));
                    byte[] body = ByteBuffer.allocate(size).putInt(number).array();
                    producer.send(PROVIDER.newMessageBuilder().setTopic(topic).setBody(body).build());
                }
                return null;
            }));
        }
        for (CompletableFuture<Void> one : workers) {
            one.get();
        }
        double rate = (double) count * size / ((System.nanoTime() - begun) / 1e9) / 1e6;
        System.out.printf("%d messages, %.1f MB/s, %d came again%n", count, rate, given.get() - count);
    }

    private static CompletableFuture<Void> worker(Callable<?> work) {
        CompletableFuture<Void> ended = new CompletableFuture<>();
        new Thread(() -> {
            try {
                work.call();
                ended.complete(null);
            } catch (Throwable failure) {
                ended.completeExceptionally(failure);
            }
        }).start();
        return ended;
    }

    private static void wrongCredentials() throws Exception {
        try {
            send(producer(null), "no");
        } catch (Exception refused) {
            System.out.println(refused);
            return;
        }
        throw new AssertionError("it was sent");
    }

    private static void until(BooleanSupplier condition, String what) throws Exception {
        for (long end = System.nanoTime() + 60_000_000_000L; !condition.getAsBoolean(); Thread.sleep(50)) {
            ensure(System.nanoTime() < end, what);
        }
    }

    private static void ensure(boolean good, String what) {
        if (!good) {
            throw new AssertionError(what);
        }
    }
}
