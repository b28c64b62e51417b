import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.body.BrokerStatsData;
import org.apache.rocketmq.remoting.protocol.body.Connection;
import org.apache.rocketmq.remoting.protocol.body.ConsumerConnection;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What rocketmq-exporter and rocketmq-dashboard ask, by the same calls: `Watching NAMES BROKER-ADDRESS`. */
public final class Watching {
    private static final String TOPIC = "watched";
    private static final String GROUP = "watchers";
    private static final String CLUSTER = "DefaultCluster";
    private static int failures;

    public static void main(String[] arguments) throws Exception {
        String names = arguments[0];
        String broker = arguments[1];
        CountDownLatch consumed = new CountDownLatch(1);
        DefaultMQProducer producer = new DefaultMQProducer("watched_producers");
        producer.setNamesrvAddr(names);
        producer.start();
        SendResult sent = producer.send(new Message(TOPIC, "A", "key", "body".getBytes()));
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(GROUP);
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName("consumer");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            consumed.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.setPersistConsumerOffsetInterval(500);
        consumer.start();
        if (!consumed.await(120, TimeUnit.SECONDS)) throw new AssertionError("nothing came");
        DefaultMQAdminExt admin = new DefaultMQAdminExt(30_000);
        admin.setNamesrvAddr(names);
        admin.setInstanceName("admin");
        admin.start();
        exporter(admin, broker);
        dashboard(admin, broker, sent);
        System.out.println(failures == 0 ? "OK" : failures + " failed");
        System.out.flush();
        Runtime.getRuntime().halt(failures == 0 ? 0 : 1);
    }

    // -- rocketmq-exporter: its collecting tasks -----------------------------------------------------------------------

    private static void exporter(DefaultMQAdminExt admin, String broker) {
        check("cluster", () -> admin.examineBrokerClusterInfo().getClusterAddrTable().get(CLUSTER).contains("ours"));
        check("topics", () -> admin.fetchAllTopicList().getTopicList().contains(TOPIC));
        check("topic stats", () -> admin.examineTopicStats(TOPIC).getOffsetTable().values().stream()
            .mapToLong(one -> one.getMaxOffset() - one.getMinOffset()).sum() == 1);
        check("topic route", () -> admin.examineTopicRouteInfo(TOPIC).getBrokerDatas().size() == 1);
        check("who consumes", () -> eventually(() -> admin.queryTopicConsumeByWho(TOPIC).getGroupList().contains(GROUP)));
        check("consume stats", () -> eventually(() -> admin.examineConsumeStats(GROUP, TOPIC).computeTotalDiff() == 0));
        check("consumer running", () -> {
            ConsumerConnection found = admin.examineConsumerConnectionInfo(GROUP);
            Connection one = found.getConnectionSet().iterator().next();
            return admin.getConsumerRunningInfo(GROUP, one.getClientId(), false).getStatusTable().containsKey(TOPIC);
        });
        check("producers", () -> admin.getAllProducerInfo(broker).getData().containsKey("watched_producers"));
        for (String name : Arrays.asList("TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE")) rates(admin, broker, name, TOPIC);
        for (String name : Arrays.asList("GROUP_GET_NUMS", "GROUP_GET_SIZE")) {
            rates(admin, broker, name, TOPIC + "@" + GROUP);
        }
        for (String name : Arrays.asList("BROKER_PUT_NUMS", "BROKER_GET_NUMS")) rates(admin, broker, name, CLUSTER);
        stats(admin, broker, "SNDBCK_PUT_NUMS", TOPIC + "@" + GROUP);
        check("runtime", () -> runtime(admin.fetchBrokerRuntimeStats(broker).getTable()));
    }

    /** It reads all of these, and gives up the whole broker where one is missing or no number. */
    private static boolean runtime(Map<String, String> told) {
        for (String name : Arrays.asList(
            "msgPutTotalTodayNow", "msgGetTotalTodayNow", "msgPutTotalTodayMorning", "msgGetTotalTodayMorning",
            "msgPutTotalYesterdayMorning", "msgGetTotalYesterdayMorning", "sendThreadPoolQueueHeadWaitTimeMills",
            "queryThreadPoolQueueHeadWaitTimeMills", "pullThreadPoolQueueHeadWaitTimeMills", "queryThreadPoolQueueSize",
            "pullThreadPoolQueueSize", "sendThreadPoolQueueSize", "sendThreadPoolQueueCapacity",
            "pullThreadPoolQueueCapacity", "queryThreadPoolQueueCapacity", "bootTimestamp", "commitLogMinOffset",
            "commitLogMaxOffset", "dispatchMaxBuffer", "pageCacheLockTimeMills", "getMessageEntireTimeMax",
            "putMessageTimesTotal", "startAcceptSendRequestTimeStamp", "putMessageEntireTimeMax",
            "earliestMessageTimeStamp", "remainTransientStoreBufferNumbs", "dispatchBehindBytes", "putMessageSizeTotal")) {
            number(told, name, Long.parseLong(String.valueOf(told.get(name))));
        }
        Integer.parseInt(told.get("brokerVersion"));
        for (String name : Arrays.asList("consumeQueueDiskRatio", "commitLogDiskRatio", "putMessageAverageSize")) {
            number(told, name, Double.parseDouble(String.valueOf(told.get(name))));
        }
        for (String name : Arrays.asList("putTps", "getMissTps", "getTransferedTps", "getTotalTps", "getFoundTps")) {
            for (String one : told.get(name).split(" ")) number(told, name, Double.parseDouble(one));
        }
        Double.parseDouble(told.get("remainHowManyDataToFlush").split(" ")[0]);
        String[] room = told.get("commitLogDirCapacity").split(" ");
        if (Double.parseDouble(room[2]) < Double.parseDouble(room[6]) && room[3].equals(room[7] + ",")) return false;
        for (String one : told.get("putMessageDistributeTime").split(" ")) Integer.parseInt(one.split(":")[1]);
        return told.get("runtime") != null && told.get("brokerVersionDesc") != null;
    }

    private static void number(Map<String, String> told, String name, double value) {
        if (Double.isNaN(value)) throw new AssertionError(name + " is " + told.get(name));
    }

    /** A message has come in and gone out: the next look at the counters sees it. */
    private static void rates(DefaultMQAdminExt admin, String broker, String name, String key) {
        check("stats " + name, () -> eventually(() -> {
            try {
                BrokerStatsData told = admin.viewBrokerStatsData(broker, name, key);
                return told.getStatsMinute().getSum() > 0 && told.getStatsHour().getTps() > 0 && told.getStatsDay().getAvgpt() > 0;
            } catch (MQClientException error) {
                if (error.getMessage().contains("not exist")) return false;
                throw error;
            }
        }));
    }

    /** Rates that a broker does not have are told with an error that the exporter and the dashboard pass over. */
    private static void stats(DefaultMQAdminExt admin, String broker, String name, String key) {
        check("stats " + name, () -> {
            try {
                return admin.viewBrokerStatsData(broker, name, key).getStatsMinute() != null;
            } catch (MQClientException error) {
                return error.getMessage().contains("not exist");
            }
        });
    }

    // -- rocketmq-dashboard: its pages ---------------------------------------------------------------------------------

    private static void dashboard(DefaultMQAdminExt admin, String broker, SendResult sent) {
        check("broker settings", () -> "ours".equals(admin.getBrokerConfig(broker).getProperty("brokerName")));
        check("topic settings", () -> admin.examineTopicConfig(broker, TOPIC).getReadQueueNums() > 0);
        check("all topics", () -> admin.getAllTopicConfig(broker, 30_000).getTopicConfigTable().containsKey(TOPIC));
        check("topics of users", () -> admin.getUserTopicConfig(broker, false, 30_000).getTopicConfigTable().containsKey(TOPIC));
        check("all groups", () -> admin.getAllSubscriptionGroup(broker, 30_000).getSubscriptionGroupTable().containsKey(GROUP));
        check("group settings", () -> GROUP.equals(admin.examineSubscriptionGroupConfig(broker, GROUP).getGroupName()));
        check("clusters of a topic", () -> admin.getTopicClusterList(TOPIC).contains(CLUSTER));
        check("lag of a broker", () -> admin.fetchConsumeStatsInBroker(broker, false, 30_000).getConsumeStatsList() != null);
        check("stats of a group", () -> admin.examineConsumeStats(GROUP).getOffsetTable().size() > 0);
        check("producer", () -> admin.examineProducerConnectionInfo("watched_producers", TOPIC).getConnectionSet().size() == 1);
        check("message by id", () -> admin.viewMessage(TOPIC, sent.getMsgId()).getQueueId() == sent.getMessageQueue().getQueueId());
        check("message by key", () -> admin.queryMessage(TOPIC, "key", 64, 0, System.currentTimeMillis() + 60_000).getMessageList().size() == 1);
        check("track of a message", () -> {
            MessageExt message = admin.viewMessage(TOPIC, sent.getMsgId());
            Set<String> found = new HashSet<>();
            admin.messageTrackDetail(message).forEach(one -> found.add(one.getConsumerGroup() + " " + one.getTrackType()));
            return found.contains(GROUP + " CONSUMED");
        });
        check("consume again", () -> {
            String client = admin.examineConsumerConnectionInfo(GROUP).getConnectionSet().iterator().next().getClientId();
            return admin.consumeMessageDirectly(GROUP, client, TOPIC, sent.getMsgId()).getConsumeResult() != null;
        });
        check("reset", () -> admin.resetOffsetByTimestamp(TOPIC, GROUP, 0, true).size() > 0);
        check("name servers", () -> admin.getNameServerConfig(admin.getNameServerAddressList()).size() == 1);
        check("slaves", () -> admin.getBrokerHAStatus(broker).isMaster());
    }

    // -- help ----------------------------------------------------------------------------------------------------------

    private static boolean eventually(Callable<Boolean> done) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!done.call()) {
            if (System.nanoTime() > end) return false;
            Thread.sleep(100);
        }
        return true;
    }

    private static void check(String what, Callable<Boolean> right) {
        String why = "answered otherwise";
        try {
            if (right.call()) return;
        } catch (Throwable error) {
            why = error.toString();
        }
        failures++;
        System.out.println("FAILED " + what + ": " + why);
    }
}
