import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import io.apicurio.registry.serde.Legacy8ByteIdHandler;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Prints the keys and values that Apicurio's serializers write with the registry at the address that is the argument: format,
 * column, a word for the settings, the bytes, and the headers as key=content, all bytes in hexadecimal. The registry has the
 * JSON Schemas of the topic json; others are registered here.
 */
public class ApicurioWrites {
  public static void main(String[] arguments) throws Exception {
    Map<String, Map<String, String>> settings = Map.of(
        "id", Map.of(),
        "long", Map.of("apicurio.registry.id-handler", Legacy8ByteIdHandler.class.getName()),
        "header", Map.of("apicurio.registry.headers.enabled", "true"));
    for (var entry : settings.entrySet()) {
      Map<String, Object> config = new HashMap<>(entry.getValue());
      config.put("apicurio.registry.url", arguments[0]);
      config.put("apicurio.registry.auto-register", "true");
      for (boolean isKey : new boolean[] {false, true}) {
        print("avro", entry.getKey(), new AvroKafkaSerializer<GenericData.Record>(), config, isKey, record());
        for (String name : new String[] {"Z", "A"}) {
          print("protobuf", entry.getKey(), new ProtobufKafkaSerializer<DynamicMessage>(), config, isKey, message(name));
        }
        Map<String, Object> ofJson = new HashMap<>(config);
        ofJson.remove("apicurio.registry.auto-register");
        ofJson.put("apicurio.registry.find-latest", "true");
        print("json", entry.getKey(), new JsonSchemaKafkaSerializer<Bean>(), ofJson, isKey, new Bean());
      }
    }
  }

  private static GenericData.Record record() {
    GenericData.Record record = new GenericData.Record(new Schema.Parser().parse(
        "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"}]}"));
    record.put("a", 5);
    return record;
  }

  /** A message of this type, of a file with two. */
  private static DynamicMessage message(String name) throws Exception {
    FieldDescriptorProto field = FieldDescriptorProto.newBuilder().setName("a").setNumber(1)
        .setType(FieldDescriptorProto.Type.TYPE_INT32).setLabel(FieldDescriptorProto.Label.LABEL_OPTIONAL).build();
    FileDescriptor file = FileDescriptor.buildFrom(FileDescriptorProto.newBuilder().setName("s.proto").setPackage("s")
        .setSyntax("proto3").addMessageType(DescriptorProto.newBuilder().setName("Z").addField(field))
        .addMessageType(DescriptorProto.newBuilder().setName("A").addField(field)).build(), new FileDescriptor[0]);
    var type = file.findMessageTypeByName(name);
    return DynamicMessage.newBuilder(type).setField(type.findFieldByName("a"), 5).build();
  }

  private static <T> void print(
      String format, String setting, Serializer<T> serializer, Map<String, ?> config, boolean isKey, T value) {
    RecordHeaders headers = new RecordHeaders();
    try (serializer) {
      serializer.configure(config, isKey);
      byte[] bytes = serializer.serialize(format, headers, value);
      StringBuilder line = new StringBuilder(String.join("\t",
          format, isKey ? "key" : "value", setting, HexFormat.of().formatHex(bytes)));
      for (Header header : headers) {
        line.append('\t').append(header.key()).append('=').append(HexFormat.of().formatHex(header.value()));
      }
      System.out.println(line);
    }
  }

  public static class Bean {
    public int a = 5;
  }
}
