import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.LockSupport;
// Kafka 4.4 has moved Exit from the first package to the second.
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;

/**
 * Kafka's own tools in one process. A command is a line of tab-separated words: the main class and its arguments; the
 * answer is what the tool prints, then "exit status N".
 */
public class Tools {
    private static final SynchronousQueue<Integer> STATUSES = new SynchronousQueue<>();

    public static void main(String[] arguments) throws Exception {
        Exit.setExitProcedure((status, message) -> end(status));
        Exit.setHaltProcedure((status, message) -> end(status));
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            String[] words = line.split("\t");
            var tool = new Thread(() -> run(words[0], Arrays.copyOfRange(words, 1, words.length)));
            tool.setDaemon(true);
            tool.start();
            int status = STATUSES.take();
            System.out.println("exit status " + status);
            System.out.flush();
        }
        // Without the hooks that tools have left.
        Runtime.getRuntime().halt(0);
    }

    private static void run(String name, String[] arguments) {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
            end(0);
        } catch (ReflectiveOperationException e) {
            e.printStackTrace();
            end(1);
        }
    }

    /** As at an exit, nothing else of the tool runs. */
    private static void end(int status) {
        try {
            STATUSES.put(status);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        while (true) LockSupport.park();
    }
}
