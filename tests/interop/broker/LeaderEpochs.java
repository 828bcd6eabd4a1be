import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.RemoteLogManager;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;

/**
 * Whether segments are within the lineage of a partition's leader epochs, by a broker's own method. A line is
 * `END EPOCHS LINEAGE`, with epochs as `0:0,2:50`.
 */
public class LeaderEpochs {
    public static void main(String[] arguments) throws Exception {
        Method within = RemoteLogManager.class.getDeclaredMethod("isRemoteSegmentWithinLeaderEpochs",
            RemoteLogSegmentMetadata.class, long.class, NavigableMap.class);
        Method filtered = RemoteLogManager.class.getDeclaredMethod("buildFilteredLeaderEpochMap", NavigableMap.class);
        within.setAccessible(true);
        filtered.setAccessible(true);
        TopicIdPartition partition = new TopicIdPartition(Uuid.randomUuid(), new TopicPartition("topic", 0));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            NavigableMap<Integer, Long> epochs = parse(words[1]);
            RemoteLogSegmentMetadata segment = new RemoteLogSegmentMetadata(
                new RemoteLogSegmentId(partition, Uuid.randomUuid()), epochs.firstEntry().getValue(),
                Long.parseLong(words[0]), 0, 0, 0, 1, epochs);
            System.out.println(within.invoke(null, segment, Long.MAX_VALUE, filtered.invoke(null, parse(words[2]))));
        }
    }

    private static NavigableMap<Integer, Long> parse(String text) {
        NavigableMap<Integer, Long> epochs = new TreeMap<>();
        for (String entry : text.split(",")) {
            String[] pair = entry.split(":");
            epochs.put(Integer.parseInt(pair[0]), Long.parseLong(pair[1]));
        }
        return epochs;
    }
}
