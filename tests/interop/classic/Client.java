import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;

/** RocketMQ's own classic client: `Client NAMES FEATURE TOPIC GROUP`; prints OK when the feature does what it should. */
public final class Client {
    private static String names;
    private static String topic;
    private static String group;
    private static int instances;

    public static void main(String[] arguments) throws Exception {
        names = arguments[0];
        topic = arguments[2];
        group = arguments[3];
        int status = 1;
        try {
            run(arguments[1]);
            System.out.println("OK");
            status = 0;
        } catch (Throwable error) {
            error.printStackTrace();
        }
        System.out.flush();
        System.err.flush();
        Runtime.getRuntime().halt(status); // its clients would take seconds to end
    }

    private static void run(String feature) throws Exception {
        switch (feature) {
            case "send": send(); break;
            case "batch": batch(); break;
            case "large": large(); break;
            case "concurrent": consumed(20, false); break;
            case "orderly": consumed(20, true); break;
            case "filter": filter(); break;
            case "broadcast": broadcast(); break;
            case "rebalance": rebalance(); break;
            case "resume": resume(); break;
            case "reset": reset(); break;
            case "retry": retry(); break;
            case "dead_letter": deadLetter(false); break;
            case "orderly_dead_letter": deadLetter(true); break;
            case "delay": delay(); break;
            case "timed": timed(); break;
            case "transaction": transaction(); break;
            case "request": request(); break;
            case "lite_pull": litePull(); break;
            case "query": query(); break;
            case "pop": pop(); break;
            case "traced": traced(); break;
            case "wrong_key": wrongKey(); break;
            case "steady": steady(); break;
            default: throw new IllegalArgumentException(feature);
        }
    }

    // -- making clients ------------------------------------------------------------------------------------------------

    private static RPCHook hook() {
        String key = System.getenv("ACCESS_KEY");
        return key == null ? null : new AclClientRPCHook(new SessionCredentials(key, System.getenv("SECRET_KEY")));
    }

    private static DefaultMQProducer producer() throws Exception {
        return started(new DefaultMQProducer(group + "_producers", hook()));
    }

    private static <P extends DefaultMQProducer> P started(P producer) throws Exception {
        producer.setNamesrvAddr(names);
        producer.setInstanceName("i" + ++instances);
        producer.setSendMsgTimeout(30_000);
        producer.setMqClientApiTimeout(30_000);
        producer.setPollNameServerInterval(1_000);
        producer.setHeartbeatBrokerInterval(1_000);
        producer.start();
        return producer;
    }

    private static DefaultMQPushConsumer consumer(String ofGroup, String expression) throws Exception {
        DefaultMQPushConsumer consumer =
            new DefaultMQPushConsumer(null, ofGroup, hook(), new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName("i" + ++instances);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setMqClientApiTimeout(30_000);
        consumer.setPollNameServerInterval(1_000);
        consumer.setHeartbeatBrokerInterval(1_000);
        consumer.setPersistConsumerOffsetInterval(1_000);
        consumer.subscribe(topic, expression);
        return consumer;
    }

    private static DefaultMQPushConsumer collecting(DefaultMQPushConsumer consumer, Set<String> bodies) throws Exception {
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt one : messages) bodies.add(text(one));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    private static Message message(String body, String tag) {
        return new Message(topic, tag, "key-" + body, body.getBytes(StandardCharsets.UTF_8));
    }

    private static String text(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    private static void check(boolean right, Object what) {
        if (!right) throw new AssertionError(String.valueOf(what));
    }

    private static void await(String what, BooleanSupplier done) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        while (!done.getAsBoolean()) {
            check(System.nanoTime() < end, "never came: " + what);
            Thread.sleep(20);
        }
    }

    private static Set<String> expected(int count) {
        Set<String> all = new TreeSet<>();
        for (int number = 0; number < count; number++) all.add("m" + number);
        return all;
    }

    private static Set<String> bodies() {
        return Collections.newSetFromMap(new ConcurrentHashMap<>());
    }

    /** The first question to a name server may take longer than the client waits, where much else runs. */
    private static void routed(DefaultMQProducer producer) throws Exception {
        await("a route", () -> {
            try {
                return !producer.fetchPublishMessageQueues(topic).isEmpty();
            } catch (org.apache.rocketmq.client.exception.MQClientException error) {
                return false;
            }
        });
    }

    private static void fill(DefaultMQProducer producer, int first, int end) throws Exception {
        if (first == 0) routed(producer);
        for (int number = first; number < end; number++) {
            check(producer.send(message("m" + number, "A")).getSendStatus() == SendStatus.SEND_OK, "sent");
        }
    }

    // -- producers -----------------------------------------------------------------------------------------------------

    private static void send() throws Exception {
        DefaultMQProducer producer = producer();
        SendResult first = producer.send(message("m0", "A"));
        check(first.getSendStatus() == SendStatus.SEND_OK && first.getOffsetMsgId() != null, first);
        CountDownLatch answered = new CountDownLatch(5);
        for (int number = 1; number < 6; number++) {
            producer.send(message("m" + number, "A"), new SendCallback() {
                @Override public void onSuccess(SendResult result) { answered.countDown(); }
                @Override public void onException(Throwable error) { error.printStackTrace(); }
            });
        }
        check(answered.await(60, TimeUnit.SECONDS), "callbacks");
        for (int number = 6; number < 9; number++) producer.sendOneway(message("m" + number, "A"));
        for (int number = 9; number < 12; number++) {
            SendResult chosen = producer.send(message("m" + number, "A"), (queues, one, argument) -> queues.get(2), null);
            check(chosen.getMessageQueue().getQueueId() == 2, chosen);
        }
        Set<String> found = bodies();
        collecting(consumer(group, "*"), found);
        await("all of them", () -> found.equals(expected(12)));
    }

    private static void batch() throws Exception {
        DefaultMQProducer producer = producer();
        List<Message> messages = new ArrayList<>();
        for (String body : expected(12)) messages.add(message(body, "A"));
        SendResult result = producer.send(messages);
        check(result.getSendStatus() == SendStatus.SEND_OK && result.getMsgId().split(",").length == 12, result);
        Set<String> found = bodies();
        collecting(consumer(group, "*"), found);
        await("the batch", () -> found.equals(expected(12)));
    }

    private static void large() throws Exception {
        byte[] body = new byte[500_000];
        Arrays.fill(body, (byte) 'x'); // the client compresses it
        SendResult result = producer().send(new Message(topic, body));
        check(result.getSendStatus() == SendStatus.SEND_OK, result);
        CountDownLatch same = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = consumer(group, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            if (Arrays.equals(messages.get(0).getBody(), body)) same.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        check(same.await(60, TimeUnit.SECONDS), "the same body");
    }

    private static void delay() throws Exception {
        DefaultMQProducer producer = producer();
        Set<String> found = bodies();
        collecting(consumer(group, "*"), found);
        Message later = message("m0", "A");
        later.setDelayTimeLevel(1);
        long begun = System.currentTimeMillis();
        producer.send(later);
        await("the delayed message", () -> !found.isEmpty());
        check(System.currentTimeMillis() - begun >= 1_000, "not before its time");
    }

    private static void timed() throws Exception {
        DefaultMQProducer producer = producer();
        Set<String> found = bodies();
        collecting(consumer(group, "*"), found);
        Message later = message("m0", "A");
        later.putUserProperty("colour", "red");
        Message.class.getMethod("setDelayTimeMs", long.class).invoke(later, 1_500L);
        long begun = System.currentTimeMillis();
        producer.send(later);
        await("the timed message", () -> !found.isEmpty());
        check(System.currentTimeMillis() - begun >= 1_500, "not before its time");
    }

    private static void transaction() throws Exception {
        Map<String, AtomicInteger> checks = new ConcurrentHashMap<>();
        TransactionMQProducer producer = new TransactionMQProducer(group + "_producers", hook());
        producer.setTransactionListener(new TransactionListener() {
            @Override public LocalTransactionState executeLocalTransaction(Message message, Object state) {
                return (LocalTransactionState) state;
            }
            @Override public LocalTransactionState checkLocalTransaction(MessageExt message) {
                check(message.getTopic().equals(topic), message);
                checks.computeIfAbsent(text(message), name -> new AtomicInteger()).incrementAndGet();
                return text(message).equals("later")
                    ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
            }
        });
        started(producer);
        routed(producer);
        Set<String> found = bodies();
        collecting(consumer(group, "*"), found);
        producer.sendMessageInTransaction(message("kept", "A"), LocalTransactionState.COMMIT_MESSAGE);
        producer.sendMessageInTransaction(message("dropped", "A"), LocalTransactionState.ROLLBACK_MESSAGE);
        producer.sendMessageInTransaction(message("later", "A"), LocalTransactionState.UNKNOW);
        producer.sendMessageInTransaction(message("never", "A"), LocalTransactionState.UNKNOW);
        await("both checks", () -> checks.containsKey("later") && checks.containsKey("never"));
        await("what was committed", () -> found.size() == 2);
        check(found.equals(new TreeSet<>(Arrays.asList("kept", "later"))), found);
    }

    private static void request() throws Exception {
        DefaultMQProducer asking = producer();
        routed(asking);
        DefaultMQProducer answering = producer();
        DefaultMQPushConsumer consumer = consumer(group, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            try {
                for (MessageExt one : messages) {
                    byte[] body = ("re:" + text(one)).getBytes(StandardCharsets.UTF_8);
                    answering.send(MessageUtil.createReplyMessage(one, body));
                }
            } catch (Exception error) {
                error.printStackTrace();
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        List<String> answers = Collections.synchronizedList(new ArrayList<>());
        for (int number = 0; number < 3; number++) {
            asking.request(message("m" + number, "A"), new RequestCallback() {
                @Override public void onSuccess(Message answer) {
                    if (answer != null) answers.add(new String(answer.getBody(), StandardCharsets.UTF_8));
                }
                @Override public void onException(Throwable error) { error.printStackTrace(); }
            }, 60_000);
        }
        boolean callsBackEarly = org.apache.rocketmq.common.MQVersion.CURRENT_VERSION < 413; // with null, when it is sent
        if (callsBackEarly) {
            Message answer = asking.request(message("m3", "A"), 60_000);
            check(new String(answer.getBody(), StandardCharsets.UTF_8).equals("re:m3"), answer);
        } else {
            await("three answers", () -> answers.size() == 3);
            check(new TreeSet<>(answers).equals(new TreeSet<>(Arrays.asList("re:m0", "re:m1", "re:m2"))), answers);
        }
    }

    private static void query() throws Exception {
        DefaultMQProducer producer = producer();
        SendResult sent = producer.send(message("m0", "A"));
        long now = System.currentTimeMillis();
        List<MessageExt> found = producer.queryMessage(topic, "key-m0", 32, now - 3_600_000, now + 3_600_000).getMessageList();
        check(found.size() == 1 && text(found.get(0)).equals("m0"), found);
        check(text(producer.viewMessage(topic, sent.getOffsetMsgId())).equals("m0"), "by offset id");
        check(text(producer.viewMessage(topic, sent.getMsgId())).equals("m0"), "by unique id");
    }

    /** One message that is consumed at the second try, and one whose transaction is committed, both with traces. */
    private static void traced() throws Exception {
        DefaultMQProducer producer = started(new DefaultMQProducer(group + "_producers", hook(), true, null));
        TransactionMQProducer deciding =
            new TransactionMQProducer(null, group + "_deciding", hook(), true, null);
        deciding.setTransactionListener(new TransactionListener() {
            @Override public LocalTransactionState executeLocalTransaction(Message message, Object state) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
            @Override public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        started(deciding);
        DefaultMQPushConsumer consumer =
            new DefaultMQPushConsumer(group, hook(), new AllocateMessageQueueAveragely(), true, null);
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName("i" + ++instances);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPollNameServerInterval(1_000);
        consumer.setHeartbeatBrokerInterval(1_000);
        consumer.subscribe(topic, "*");
        AtomicInteger refused = new AtomicInteger();
        Set<String> found = bodies();
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(1);
            for (MessageExt one : messages) {
                if (text(one).equals("plain") && refused.getAndIncrement() == 0) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                found.add(text(one));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        String plain = producer.send(message("plain", "A")).getMsgId();
        String decided = deciding.sendMessageInTransaction(message("decided", "B"), null).getMsgId();
        System.out.println("plain " + plain);
        System.out.println("decided " + decided);
        await("both", () -> found.size() == 2);
        await("the traces", () -> consumptions(producer, plain) == 2 && consumptions(producer, decided) == 1);
        consumer.shutdown();
        producer.shutdown();
        deciding.shutdown();
    }

    /** Ends of consumptions that consumers have told of: they do so some seconds later. */
    private static int consumptions(DefaultMQProducer producer, String id) {
        int count = 0;
        try {
            long now = System.currentTimeMillis();
            for (MessageExt one : producer.queryMessage("RMQ_SYS_TRACE_TOPIC", id, 32, 0, now + 3_600_000).getMessageList()) {
                count += text(one).split("SubAfter\\x01[^\\x01]*\\x01" + id, -1).length - 1;
            }
        } catch (Exception none) {
            return 0;
        }
        return count;
    }

    private static void wrongKey() throws Exception {
        try {
            producer().send(message("m0", "A"));
        } catch (org.apache.rocketmq.client.exception.MQClientException | org.apache.rocketmq.client.exception.MQBrokerException error) {
            check((error.getMessage() + error.getCause()).contains("signature"), error);
            return;
        }
        throw new AssertionError("it was taken");
    }

    // -- consumers -----------------------------------------------------------------------------------------------------

    private static void consumed(int count, boolean orderly) throws Exception {
        DefaultMQProducer producer = producer();
        fill(producer, 0, count / 2);
        Set<String> found = bodies();
        List<String> inOrder = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = consumer(group, "A || B");
        if (orderly) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                for (MessageExt one : messages) {
                    if (found.add(text(one)) && text(one).equals("m3")) {
                        found.remove("m3");
                        found.add("once");
                        if (inOrder.add("suspended") && Collections.frequency(inOrder, "suspended") == 1) {
                            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                        }
                        found.add("m3");
                    }
                    inOrder.add(one.getBrokerName() + "/" + one.getQueueId() + ":" + one.getQueueOffset());
                }
                return ConsumeOrderlyStatus.SUCCESS;
            });
            consumer.start();
        } else {
            collecting(consumer, found);
        }
        fill(producer, count / 2, count);
        await("all of them", () -> found.containsAll(expected(count)));
        Map<String, Integer> next = new HashMap<>();
        for (String one : new ArrayList<>(inOrder)) {
            if (one.equals("suspended")) continue;
            String[] place = one.split(":");
            int offset = Integer.parseInt(place[1]);
            check(offset == next.getOrDefault(place[0], 0), inOrder);
            next.put(place[0], offset + 1);
        }
    }

    private static void filter() throws Exception {
        DefaultMQProducer producer = producer();
        for (int number = 0; number < 10; number++) {
            Message one = message("m" + number, number % 2 == 0 ? "A" : "B");
            one.putUserProperty("age", String.valueOf(number));
            producer.send(one);
        }
        Set<String> tagged = bodies();
        collecting(consumer(group + "_tags", "B || C"), tagged);
        Set<String> selected = bodies();
        DefaultMQPushConsumer selecting = consumer(group + "_sql", "*");
        selecting.subscribe(topic, MessageSelector.bySql("age BETWEEN 2 AND 4"));
        collecting(selecting, selected);
        await("those with tags", () -> tagged.size() == 5);
        await("those selected", () -> selected.size() == 3);
        check(selected.equals(new TreeSet<>(Arrays.asList("m2", "m3", "m4"))), selected);
    }

    private static void broadcast() throws Exception {
        DefaultMQProducer producer = producer();
        fill(producer, 0, 5);
        List<Set<String>> all = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            DefaultMQPushConsumer consumer = consumer(group, "*");
            toAll(consumer);
            all.add(bodies());
            collecting(consumer, all.get(number));
        }
        fill(producer, 5, 10);
        await("all at both", () -> all.get(0).equals(expected(10)) && all.get(1).equals(expected(10)));
    }

    /** The model's class lies in another package since 5.0. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void toAll(DefaultMQPushConsumer consumer) throws Exception {
        Class model = DefaultMQPushConsumer.class.getMethod("getMessageModel").getReturnType();
        Enum broadcasting = Enum.valueOf(model, "BROADCASTING");
        DefaultMQPushConsumer.class.getMethod("setMessageModel", model).invoke(consumer, broadcasting);
    }

    private static void rebalance() throws Exception {
        DefaultMQProducer producer = producer();
        fill(producer, 0, 4);
        List<Set<String>> all = new ArrayList<>(Arrays.asList(bodies(), bodies()));
        DefaultMQPushConsumer first = collecting(consumer(group, "*"), all.get(0));
        await("the first", () -> all.get(0).size() == 4);
        collecting(consumer(group, "*"), all.get(1));
        AtomicInteger sent = new AtomicInteger(4);
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        while (all.get(1).size() < 4) {
            check(System.nanoTime() < end, "the second never got queues");
            fill(producer, sent.get(), sent.addAndGet(4));
            Thread.sleep(200);
        }
        first.shutdown();
        int before = all.get(1).size();
        fill(producer, sent.get(), sent.addAndGet(8));
        await("the second has all queues", () -> all.get(1).size() >= before + 8);
        Set<String> union = new TreeSet<>(all.get(0));
        union.addAll(all.get(1));
        check(union.equals(expected(sent.get())), union);
    }

    private static void resume() throws Exception {
        DefaultMQProducer producer = producer();
        fill(producer, 0, 8);
        Set<String> before = bodies();
        DefaultMQPushConsumer first = collecting(consumer(group, "*"), before);
        await("the first eight", () -> before.size() == 8);
        first.shutdown();
        fill(producer, 8, 12);
        Set<String> after = bodies();
        collecting(consumer(group, "*"), after);
        await("the rest", () -> after.size() >= 4);
        Set<String> rest = expected(12);
        rest.removeAll(before);
        check(after.equals(rest), after);
    }

    /** Somebody sets the group back to the beginning, each time that this says READY; once while nothing is pulled. */
    private static void reset() throws Exception {
        fill(producer(), 0, 8);
        Set<String> found = bodies();
        DefaultMQPushConsumer consumer = collecting(consumer(group, "*"), found);
        await("all of them", () -> found.size() == 8);
        for (boolean suspended : new boolean[] {false, true}) {
            if (suspended) consumer.suspend();
            found.clear();
            System.out.println("READY");
            await("all of them again", () -> found.size() == 8);
        }
    }

    private static void retry() throws Exception {
        DefaultMQProducer producer = producer();
        producer.send(message("m0", "A"));
        List<Integer> times = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = consumer(group, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt one = messages.get(0);
            check(one.getTopic().equals(topic), one);
            times.add(one.getReconsumeTimes());
            context.setDelayLevelWhenNextConsume(1);
            return times.size() < 3 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        await("three times", () -> times.size() == 3);
        check(times.equals(Arrays.asList(0, 1, 2)), times);
    }

    private static void deadLetter(boolean orderly) throws Exception {
        DefaultMQProducer producer = producer();
        producer.send(message("m0", "A"));
        DefaultMQPushConsumer consumer = consumer(group, "*");
        consumer.setMaxReconsumeTimes(1);
        consumer.setSuspendCurrentQueueTimeMillis(100);
        if (orderly) {
            consumer.registerMessageListener(
                (MessageListenerOrderly) (messages, context) -> ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                context.setDelayLevelWhenNextConsume(1);
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            });
        }
        consumer.start();
        String dead = "%DLQ%" + group;
        Set<String> found = bodies();
        topic = dead;
        collecting(consumer(group + "_dead", "*"), found);
        await("the dead letter", () -> found.contains("m0"));
    }

    private static void litePull() throws Exception {
        fill(producer(), 0, 10);
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(null, group, hook());
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName("i" + ++instances);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.start();
        Set<String> found = bodies();
        await("all of them", () -> {
            for (MessageExt one : consumer.poll(200)) found.add(text(one));
            return found.equals(expected(10));
        });
        consumer.commitSync();
        consumer.shutdown();
    }

    /** Sends and consumes until a line comes, whatever happens to the brokers; says how often a send has failed. */
    private static void steady() throws Exception {
        DefaultMQProducer producer = producer();
        Set<String> found = bodies();
        for (int number = 0; number < 2; number++) collecting(consumer(group, "*"), found);
        AtomicInteger ended = new AtomicInteger();
        Thread reader = new Thread(() -> {
            try { System.in.read(); } catch (java.io.IOException error) { error.printStackTrace(); }
            ended.set(1);
        });
        reader.start();
        int sent = 0;
        int failed = 0;
        while (ended.get() == 0) {
            try {
                if (producer.send(message("m" + sent, "A")).getSendStatus() == SendStatus.SEND_OK) sent++;
                else failed++;
                if (sent % 20 == 0) System.out.println("SENT " + sent);
            } catch (Exception error) {
                if (failed++ == 0) error.printStackTrace();
            }
            Thread.sleep(10);
        }
        System.out.println("FAILED " + failed);
        Set<String> all = expected(sent);
        await("all that was sent", () -> found.containsAll(all));
    }

    private static void pop() throws Exception {
        DefaultMQProducer producer = producer();
        fill(producer, 0, 10);
        Set<String> found = bodies();
        AtomicInteger failures = new AtomicInteger();
        DefaultMQPushConsumer consumer = consumer(group, "*");
        DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
        DefaultMQPushConsumer.class.getMethod("setPopInvisibleTime", long.class).invoke(consumer, 10_000L);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt one : messages) {
                if (text(one).equals("m3") && failures.getAndIncrement() == 0) {
                    context.setDelayLevelWhenNextConsume(1);
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                found.add(text(one));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        await("all of them", () -> found.equals(expected(10)) && failures.get() > 1);
    }
}
