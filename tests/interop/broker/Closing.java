package interop;

import java.lang.reflect.Method;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** A clean shutdown of a log. */
public final class Closing {
    private Closing() { }

    /** Closes a log as a broker's LogManager does. Since Kafka 4.4, trimming the last segment is a step of its own. */
    public static void close(UnifiedLog log) throws ReflectiveOperationException {
        for (Method method : UnifiedLog.class.getMethods()) {
            if (method.getName().equals("prepareActiveSegmentForClose")) {
                method.invoke(log);
            }
        }
        log.close();
    }
}
