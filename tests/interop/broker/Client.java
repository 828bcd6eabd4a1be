import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own clients, served over a pipe. A command is a line of tab-separated words; the answer is lines,
 * then "." or "! message". create: topics, each "name key=value ..."; read: topic, isolation level; times:
 * topic, timestamps.
 */
public class Client {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            String[] words = line.split("\t");
            var answer = new StringBuilder();
            try {
                switch (words[0]) {
                    case "create" -> create(arguments[0], words);
                    case "read" -> read(arguments[0], words[1], words[2], answer);
                    case "transact" -> transact(arguments[0], words[1]);
                    case "producers" -> producers(arguments[0], words[1], answer);
                    case "times" -> times(arguments[0], words, answer);
                    default -> throw new IllegalArgumentException(words[0]);
                }
                answer.append(".\n");
            } catch (Exception e) {
                answer.append("! ").append(e.toString().replace('\n', ' ')).append('\n');
            }
            System.out.print(answer);
            System.out.flush();
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String transactionalId) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", 0,
            "enable.idempotence", true, "batch.size", 200, "compression.type", "lz4"));
        if (transactionalId != null) {
            config.put("transactional.id", transactionalId);
            // A transaction that is left open is still open when a slow test looks at it.
            config.put("transaction.timeout.ms", (int) Duration.ofMinutes(15).toMillis());
        }
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, int records) {
        for (int i = 0; i < records; i++) producer.send(new ProducerRecord<>(topic, 0, new byte[] {(byte) i}, new byte[50]));
        producer.flush();
    }

    /** Writes committed and aborted transactions, one that stays open, and records without a transaction. */
    private static void transact(String bootstrap, String topic) {
        try (var one = producer(bootstrap, "one"); var plain = producer(bootstrap, null)) {
            var open = producer(bootstrap, "open");
            one.initTransactions();
            open.initTransactions();
            for (int round = 0; round < 4; round++) {
                one.beginTransaction();
                send(one, topic, 5 + round);
                send(plain, topic, 3);
                if (round == 2) {
                    open.beginTransaction();
                    send(open, topic, 7);
                }
                if (round % 2 == 0) one.commitTransaction();
                else one.abortTransaction();
            }
            // A graceful close would abort the transaction.
            open.close(Duration.ZERO);
        }
    }

    private static void producers(String bootstrap, String topic, StringBuilder answer) throws Exception {
        var partition = new TopicPartition(topic, 0);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) bootstrap))) {
            for (var one : admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers())
                answer.append(one.producerId()).append(' ').append(one.producerEpoch()).append(' ').append(one.lastSequence())
                    .append(' ').append(one.lastTimestamp()).append(' ').append(one.coordinatorEpoch().orElse(-1)).append(' ')
                    .append(one.currentTransactionStartOffset().orElse(-1)).append('\n');
        }
    }

    private static void create(String bootstrap, String[] words) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (int i = 1; i < words.length; i++) {
            String[] parts = words[i].split(" ");
            Map<String, String> configs = new HashMap<>();
            for (int j = 1; j < parts.length; j++) {
                String[] pair = parts[j].split("=", 2);
                configs.put(pair[0], pair[1]);
            }
            topics.add(new NewTopic(parts[0], 1, (short) 1).configs(configs));
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) bootstrap))) {
            admin.createTopics(topics).all().get();
        }
    }

    /** Every record from the beginning to the end, which for read_committed is the last stable offset. */
    private static void read(String bootstrap, String topic, String isolation, StringBuilder answer) {
        var partition = new TopicPartition(topic, 0);
        try (var consumer = consumer(bootstrap, isolation)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
            while (consumer.position(partition) < end) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("stuck at " + consumer.position(partition) + " of " + end);
                }
                consumer.poll(Duration.ofMillis(200)).records(partition).forEach(record -> answer.append(line(record)));
            }
        }
    }

    /** A record as the fixtures' digests have it, with the end of the line. */
    static String line(ConsumerRecord<byte[], byte[]> record) {
        var line = new StringBuilder();
        line.append(record.offset()).append('\t').append(record.timestamp()).append('\t')
            .append(record.timestampType()).append('\t').append(hex(record.key())).append('\t')
            .append(hex(record.value())).append('\t');
        for (Header header : record.headers()) {
            line.append(hex(header.key().getBytes(StandardCharsets.UTF_8))).append('=')
                .append(hex(header.value())).append(';');
        }
        return line.append('\n').toString();
    }

    private static void times(String bootstrap, String[] words, StringBuilder answer) {
        var partition = new TopicPartition(words[1], 0);
        try (var consumer = consumer(bootstrap, "read_uncommitted")) {
            for (int i = 2; i < words.length; i++) {
                var found = consumer.offsetsForTimes(Map.of(partition, Long.parseLong(words[i]))).get(partition);
                answer.append(found == null ? "null" : found.offset() + " " + found.timestamp()).append('\n');
            }
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String isolation) {
        var settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("isolation.level", isolation);
        settings.put("auto.offset.reset", "none");
        settings.put("fetch.max.wait.ms", "50");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "null" : HEX.formatHex(bytes);
    }
}
