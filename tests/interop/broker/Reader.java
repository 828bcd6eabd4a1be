import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One consumer reads partition 0 of many topics, by any version of Kafka's clients. Arguments: bootstrap servers, isolation
 * level, "assign" or the group to subscribe with, topics. The property group.protocol is that of the consumer. Prints "topic offset timestamp type key value headers" in the
 * order of each topic, and then how many of the topics and brokers the admin client lists.
 */
public class Reader {
    public static void main(String[] arguments) throws Exception {
        List<String> topics = List.of(arguments).subList(3, arguments.length);
        var partitions = topics.stream().map(topic -> new TopicPartition(topic, 0)).toList();
        var settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("isolation.level", arguments[1]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("fetch.max.wait.ms", "50");
        boolean assigns = arguments[2].equals("assign");
        if (!assigns) settings.put("group.id", arguments[2]);
        // Clients before 3.7 warn of a config that they do not know.
        String protocol = System.getProperty("group.protocol");
        if (protocol != null) settings.put("group.protocol", protocol);
        var out = new StringBuilder();
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            Map<TopicPartition, Long> left = new TreeMap<>((a, b) -> a.topic().compareTo(b.topic()));
            left.putAll(consumer.endOffsets(partitions));
            if (assigns) {
                consumer.assign(partitions);
                consumer.seekToBeginning(partitions);
            } else {
                consumer.subscribe(topics);
            }
            long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
            while (!left.isEmpty()) {
                if (System.nanoTime() > deadline) throw new IllegalStateException("stuck before " + left);
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200)))
                    out.append(record.topic()).append('\t').append(Client.line(record));
                left.entrySet().removeIf(entry -> consumer.assignment().contains(entry.getKey())
                    && consumer.position(entry.getKey()) >= entry.getValue());
            }
            if (!assigns) consumer.commitSync();
        }
        System.out.print(out);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) arguments[0]))) {
            // Not describeTopics: no method for its result is in all versions.
            var listed = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
            long known = topics.stream().filter(listed::contains).count();
            System.out.println("listed\t" + known + "\t" + admin.describeCluster().nodes().get().size());
        }
    }
}
