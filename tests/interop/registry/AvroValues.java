import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.Encoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.util.RandomData;

/** For each line with a schema in base64, a count and a seed: values of it, as Avro's binary and JSON, in base64. */
public class AvroValues {
  public static void main(String[] arguments) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      String[] words = line.split(" ");
      String text = new String(Base64.getDecoder().decode(words[0]), StandardCharsets.UTF_8);
      Schema schema = new Schema.Parser().parse(text);
      for (Object value : new RandomData(schema, Integer.parseInt(words[1]), Long.parseLong(words[2]))) {
        var binary = new ByteArrayOutputStream();
        write(schema, value, EncoderFactory.get().binaryEncoder(binary, null));
        var json = new ByteArrayOutputStream();
        write(schema, value, EncoderFactory.get().jsonEncoder(schema, json));
        System.out.println(base64(binary) + " " + base64(json));
      }
    }
  }

  private static void write(Schema schema, Object value, Encoder encoder) throws Exception {
    new GenericDatumWriter<>(schema).write(value, encoder);
    encoder.flush();
  }

  private static String base64(ByteArrayOutputStream bytes) {
    return Base64.getEncoder().encodeToString(bytes.toByteArray());
  }
}
