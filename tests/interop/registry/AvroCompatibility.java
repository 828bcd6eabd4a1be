import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/** For each line with a reader's and a writer's schema in base64: the verdict of Avro's own class. */
public class AvroCompatibility {
  public static void main(String[] arguments) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      System.out.println(answer(line.split(" ")));
      System.out.flush();
    }
  }

  private static String answer(String[] words) {
    try {
      Schema reader = new Schema.Parser().parse(text(words[0]));
      Schema writer = new Schema.Parser().parse(text(words[1]));
      var result = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult();
      var found = new StringBuilder(result.getCompatibility().toString());
      for (var one : result.getIncompatibilities()) {
        found.append(' ').append(one.getType()).append('@').append(one.getLocation());
      }
      return found.toString();
    } catch (RuntimeException error) {
      return "error " + error.toString().replace('\n', ' ');
    }
  }

  private static String text(String base64) {
    return new String(Base64.getDecoder().decode(base64), StandardCharsets.UTF_8);
  }
}
