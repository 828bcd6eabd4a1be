import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** A sink connector that keeps nothing of what its converters accept. */
public class Sink extends SinkConnector {
    @Override
    public void start(Map<String, String> settings) {}

    @Override
    public Class<? extends Task> taskClass() {
        return Nothing.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        return List.of(Map.of());
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1";
    }

    public static class Nothing extends SinkTask {
        @Override
        public void start(Map<String, String> settings) {}

        @Override
        public void put(Collection<SinkRecord> records) {}

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1";
        }
    }
}
