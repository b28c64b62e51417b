// The official Rust client: `client HOST:PORT FEATURE TOPIC GROUP`; prints OK when the feature does what it should.
// It speaks plain text, has no push consumer, and asks with a deadline that is as long as its poll.
use std::env::{args, var};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::{MessageBuilder, MessageView};
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};

const SECONDS: Duration = Duration::from_secs(60);

struct Program {
    address: String,
    topic: String,
    group: String,
}

impl Program {
    fn client(&self) -> ClientOption {
        let mut option = ClientOption::default();
        option.set_access_url(self.address.as_str());
        option.set_long_polling_timeout(Duration::from_secs(4));
        if let (Ok(key), Ok(secret)) = (var("CLIENT_KEY"), var("CLIENT_SECRET")) {
            option.set_access_key(key);
            option.set_secret_key(secret);
        }
        option
    }

    fn sends(&self) -> ProducerOption {
        let mut option = ProducerOption::default();
        option.set_topics(vec![self.topic.as_str()]);
        option
    }

    async fn producer(&self) -> Producer {
        let mut made = Producer::new(self.sends(), self.client()).unwrap();
        made.start().await.unwrap();
        made
    }

    async fn transactions(&self, answer: bool) -> Producer {
        let checker = Box::new(move |_: String, _: MessageView| match answer {
            true => TransactionResolution::COMMIT,
            false => TransactionResolution::UNKNOWN,
        });
        let mut made = Producer::new_transaction_producer(self.sends(), self.client(), checker).unwrap();
        made.start().await.unwrap();
        made
    }

    async fn consumer(&self) -> SimpleConsumer {
        let mut option = SimpleConsumerOption::default();
        option.set_topics(vec![self.topic.as_str()]);
        option.set_consumer_group(self.group.as_str());
        let mut made = SimpleConsumer::new(option, self.client()).unwrap();
        made.start().await.unwrap();
        made
    }

    fn text(&self, body: &str) -> MessageBuilder {
        MessageBuilder::builder().set_topic(self.topic.as_str()).set_body(body.as_bytes().to_vec())
    }

    /// So many messages; those that come are acknowledged if that is wanted.
    async fn take(&self, tags: &str, count: usize, invisible: u64, acknowledge: bool) -> Vec<MessageView> {
        let (from, filter) = (self.consumer().await, FilterExpression::new(FilterType::Tag, tags));
        let (mut found, end) = (Vec::new(), Instant::now() + SECONDS);
        while found.len() < count && Instant::now() < end {
            let some = from.receive_with(self.topic.as_str(), &filter, 16, Duration::from_secs(invisible)).await;
            for one in some.unwrap() {
                if acknowledge {
                    from.ack(&one).await.unwrap();
                }
                found.push(one);
            }
        }
        assert_eq!(found.len(), count);
        found
    }

    async fn bodies(&self, tags: &str, count: usize) -> Vec<String> {
        let found = self.take(tags, count, 20, true).await;
        found.iter().map(|one| String::from_utf8_lossy(one.body()).into_owned()).collect()
    }

    async fn run(&self, feature: &str) {
        match feature {
            "send" => {
                let receipt = self.producer().await.send(self.text("hello").build().unwrap()).await.unwrap();
                assert!(!receipt.message_id().is_empty());
            }
            "simple_consumer" => {
                let to = self.producer().await;
                for number in 0..5 {
                    to.send(self.text(&format!("m{number}")).build().unwrap()).await.unwrap();
                }
                let mut found = self.bodies("*", 5).await;
                found.sort();
                assert_eq!(found.join(" "), "m0 m1 m2 m3 m4");
            }
            "several_messages" => {
                let several = (0..5).map(|number| self.text(&format!("m{number}")).build().unwrap()).collect();
                assert_eq!(self.producer().await.batch_send(several).await.unwrap().len(), 5);
                assert_eq!(self.bodies("*", 5).await.len(), 5);
            }
            "tag_filter" => {
                let to = self.producer().await;
                for tag in ["a", "b", "c"] {
                    to.send(self.text(tag).set_tag(tag).build().unwrap()).await.unwrap();
                }
                let mut found = self.bodies("a || c", 2).await;
                found.sort();
                assert_eq!(found.join(" "), "a c");
            }
            "redelivery" => {
                self.producer().await.send(self.text("again").build().unwrap()).await.unwrap();
                self.take("*", 1, 2, false).await;
                assert_eq!(self.take("*", 1, 20, true).await[0].delivery_attempt(), 2);
            }
            "fifo" => {
                let to = self.producer().await;
                for number in 0..10 {
                    to.send(self.text(&number.to_string()).set_message_group("one").build().unwrap()).await.unwrap();
                }
                assert_eq!(self.bodies("*", 10).await.concat(), "0123456789");
            }
            "delay" => {
                let due = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64 + 3;
                let later = self.text("later").set_delivery_timestamp(due).build().unwrap();
                self.producer().await.send(later).await.unwrap();
                self.take("*", 1, 20, true).await;
                assert!(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64 >= due);
            }
            "transaction" => {
                let to = self.transactions(false).await;
                let text = |body| self.text(body).enable_transaction().build().unwrap();
                let committed = to.send_transaction_message(text("committed")).await.unwrap();
                let rolled_back = to.send_transaction_message(text("rolled back")).await.unwrap();
                committed.commit().await.unwrap();
                rolled_back.rollback().await.unwrap();
                assert_eq!(self.bodies("*", 1).await, ["committed"]);
            }
            "orphan" => {
                let to = self.transactions(true).await;
                let half = self.text("orphan").enable_transaction().build().unwrap();
                let _left_alone = to.send_transaction_message(half).await.unwrap();
                assert_eq!(self.bodies("*", 1).await, ["orphan"]);
            }
            // Sends and consumes while the broker is killed and comes back: an application tries a send again that failed.
            "outage" => {
                let (to, from) = (self.producer().await, self.consumer().await);
                let (filter, mut failed, mut seen) = (FilterExpression::new(FilterType::Tag, "*"), 0, Vec::new());
                for number in 0..60 {
                    let end = Instant::now() + SECONDS;
                    while let Err(error) = to.send(self.text(&format!("o{number}")).build().unwrap()).await {
                        failed += 1;
                        assert!(Instant::now() < end, "the client does not recover: {error:?}");
                        tokio::time::sleep(Duration::from_millis(200)).await;
                    }
                    println!("SENT {number}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                let (end, mut again) = (Instant::now() + SECONDS, 0);
                while seen.len() < 60 {
                    assert!(Instant::now() < end, "{seen:?}");
                    let some = from.receive_with(self.topic.as_str(), &filter, 16, Duration::from_secs(20)).await;
                    for one in some.unwrap_or_default() {
                        let body = String::from_utf8_lossy(one.body()).into_owned();
                        if from.ack(&one).await.is_ok() && !seen.contains(&body) {
                            seen.push(body);
                        } else {
                            again += 1;
                        }
                    }
                }
                println!("{failed} sends failed, {again} messages came again");
            }
            "wrong_credentials" => {
                let mut made = Producer::new(self.sends(), self.client()).unwrap();
                if made.start().await.is_ok() {
                    assert!(made.send(self.text("no").build().unwrap()).await.is_err(), "it was sent");
                }
            }
            _ => panic!("there is no feature {feature}"),
        }
    }
}

#[tokio::main]
async fn main() {
    let [_, address, feature, topic, group]: [String; 5] = args().collect::<Vec<_>>().try_into().unwrap();
    Program { address, topic, group }.run(&feature).await;
    println!("OK");
    std::process::exit(0);
}
