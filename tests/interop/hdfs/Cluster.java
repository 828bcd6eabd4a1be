import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * A name node and a data node, until the end of the standard input. Arguments: a directory for their data, then local directories,
 * which are copied to /logs. Prints the port of the name node.
 */
public final class Cluster {
    public static void main(String[] arguments) throws Exception {
        var cluster = new MiniDFSCluster.Builder(new Configuration(), new File(arguments[0])).numDataNodes(1).build();
        cluster.waitActive();
        var files = cluster.getFileSystem();
        files.mkdirs(new Path("/logs"));
        for (int i = 1; i < arguments.length; i++) {
            files.copyFromLocalFile(new Path(arguments[i]), new Path("/logs"));
        }
        System.out.println(cluster.getNameNodePort());
        while (System.in.read() >= 0) {}
        cluster.shutdown();
    }
}
