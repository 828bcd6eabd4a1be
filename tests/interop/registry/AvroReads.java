import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.avro.AvroTypeException;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.Encoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.util.RandomData;

/**
 * For each line with a writer's schema, a reader's, both in base64, a count and a seed: values of the writer's schema as
 * Avro's binary, and what they are to the reader as Avro's JSON, in base64, or "error" if it cannot read them, or "fails".
 */
public class AvroReads {
  public static void main(String[] arguments) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      String[] words = line.split(" ");
      Schema writer = parse(words[0]);
      Schema reader = parse(words[1]);
      for (Object value : new RandomData(writer, Integer.parseInt(words[2]), Long.parseLong(words[3]))) {
        var binary = new ByteArrayOutputStream();
        write(writer, value, EncoderFactory.get().binaryEncoder(binary, null));
        System.out.println(base64(binary.toByteArray()) + " " + read(writer, reader, binary.toByteArray()));
      }
    }
  }

  /** As registries parse schemas that they have: without a look at defaults. */
  private static Schema parse(String word) {
    String text = new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    return new Schema.Parser(NameValidator.NO_VALIDATION).setValidateDefaults(false).parse(text);
  }

  private static String read(Schema writer, Schema reader, byte[] binary) throws Exception {
    Object value;
    try {
      var decoder = DecoderFactory.get().binaryDecoder(binary, null);
      value = new GenericDatumReader<>(writer, reader).read(null, decoder);
    } catch (RuntimeException error) {
      // "Invalid default": it renames fields by aliases, and then the writer's own defaults are not of the renamed record.
      boolean isVerdict = error instanceof AvroTypeException && !error.getMessage().startsWith("Invalid default");
      return isVerdict ? "error" : "fails";
    }
    var json = new ByteArrayOutputStream();
    write(reader, value, EncoderFactory.get().jsonEncoder(reader, json));
    return base64(json.toByteArray());
  }

  private static void write(Schema schema, Object value, Encoder encoder) throws Exception {
    new GenericDatumWriter<>(schema).write(value, encoder);
    encoder.flush();
  }

  private static String base64(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }
}
