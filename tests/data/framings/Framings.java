import com.amazonaws.services.schemaregistry.common.configs.GlueSchemaRegistryConfiguration;
import com.amazonaws.services.schemaregistry.serializers.SerializationDataEncoder;
import com.amazonaws.services.schemaregistry.serializers.protobuf.MessageIndexFinder;
import com.amazonaws.services.schemaregistry.serializers.protobuf.ProtobufWireFormatEncoder;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import io.apicurio.registry.resolver.strategy.ArtifactReference;
import io.apicurio.registry.serde.DefaultIdHandler;
import io.apicurio.registry.serde.Legacy4ByteIdHandler;
import io.apicurio.registry.serde.headers.DefaultHeadersHandler;
import io.apicurio.registry.serde.protobuf.ProtobufSerdeHeaders;
import io.apicurio.registry.serde.protobuf.ref.RefOuterClass.Ref;
import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.SchemaNormalization;
import org.apache.avro.generic.GenericData;
import org.apache.avro.message.BinaryMessageEncoder;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.SessionWindowedSerializer;
import org.apache.kafka.streams.kstream.TimeWindowedSerializer;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.state.internals.SessionKeySchema;
import org.apache.kafka.streams.state.internals.WindowKeySchema;

/**
 * Writes framings.json: keys and values of each framing by the library that defines it, and fingerprints of Avro schemas.
 *
 * <p>mvn dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=lib, then
 * java -cp 'lib/*' Framings.java schemas.json framings.json, with a line of schemas.json for each Avro schema.
 */
public class Framings {
  static final List<String> lines = new ArrayList<>();
  static final UUID VERSION = UUID.fromString("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63");

  public static void main(String[] arguments) throws Exception {
    Schema schema = new Schema.Parser().parse(
        "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"}]}");
    GenericData.Record record = new GenericData.Record(schema);
    record.put("a", 5);
    byte[] object = new BinaryMessageEncoder<>(GenericData.get(), schema).encode(record).array();
    byte[] payload = {10};
    add("single-object", object, new RecordHeaders());

    for (String compression : new String[] {"NONE", "ZLIB"}) {
      add("glue " + compression, encoder(compression).write(payload, VERSION), new RecordHeaders());
    }
    apicurio(payload);
    protobuf();
    byte[] framed = {0, 0, 0, 0, 7, 10};
    add("time window", new TimeWindowedSerializer<>(new ByteArraySerializer()).serialize("t",
        new Windowed<>(framed, new TimeWindow(1_700_000_000_000L, 1_700_000_060_000L))), new RecordHeaders());
    add("session window", new SessionWindowedSerializer<>(new ByteArraySerializer()).serialize("t",
        new Windowed<>(framed, new SessionWindow(1_700_000_000_000L, 1_700_000_060_000L))), new RecordHeaders());
    add("window store", WindowKeySchema.toStoreKeyBinary(Bytes.wrap(framed), 1_700_000_000_000L, 3).get(),
        new RecordHeaders());
    add("session store", SessionKeySchema.toBinary(Bytes.wrap(framed), 1_700_000_000_000L, 1_700_000_060_000L).get(),
        new RecordHeaders());

    StringBuilder prints = new StringBuilder();
    for (String line : Files.readAllLines(Path.of(arguments[0]))) {
      Schema one = new Schema.Parser().parse(line);
      prints.append(prints.isEmpty() ? "" : ",\n").append(String.format("  [%s, %s, \"%016x\"]", text(line),
          text(SchemaNormalization.toParsingForm(one)), SchemaNormalization.parsingFingerprint64(one)));
    }
    Files.writeString(Path.of(arguments[1]),
        "{\"values\": [\n" + String.join(",\n", lines) + "\n],\n\"fingerprints\": [\n" + prints + "\n]}\n");
  }

  static SerializationDataEncoder encoder(String compression) {
    return new SerializationDataEncoder(
        new GlueSchemaRegistryConfiguration(Map.of("region", "eu-west-1", "compression", compression)));
  }

  static void apicurio(byte[] payload) throws Exception {
    ArtifactReference reference = ArtifactReference.builder().globalId(7L).contentId(7L).build();
    Map<String, Object> config = Map.of("apicurio.registry.use-id", "globalId");
    DefaultIdHandler eight = new DefaultIdHandler();
    eight.configure(config, false);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(0);
    eight.writeId(reference, out);
    out.write(payload);
    add("apicurio 8", out.toByteArray(), new RecordHeaders());
    Legacy4ByteIdHandler four = new Legacy4ByteIdHandler();
    four.configure(config, false);
    out = new ByteArrayOutputStream();
    out.write(0);
    four.writeId(reference, out);
    out.write(payload);
    add("apicurio 4", out.toByteArray(), new RecordHeaders());
    for (String id : new String[] {"globalId", "contentId"}) {
      DefaultHeadersHandler handler = new DefaultHeadersHandler();
      handler.configure(new HashMap<>(Map.of("apicurio.registry.use-id", id)), false);
      RecordHeaders headers = new RecordHeaders();
      handler.writeHeaders(headers, reference);
      add("apicurio header " + id, payload, headers);
    }
  }

  static void protobuf() throws Exception {
    FieldDescriptorProto field = FieldDescriptorProto.newBuilder().setName("x").setNumber(1)
        .setType(FieldDescriptorProto.Type.TYPE_STRING).setLabel(FieldDescriptorProto.Label.LABEL_OPTIONAL).build();
    DescriptorProto inner = DescriptorProto.newBuilder().setName("Inner").addField(field).build();
    FileDescriptor file = FileDescriptor.buildFrom(FileDescriptorProto.newBuilder().setName("s.proto").setPackage("s")
        .setSyntax("proto3").addMessageType(DescriptorProto.newBuilder().setName("Z").addField(field))
        .addMessageType(DescriptorProto.newBuilder().setName("A").addField(field).addNestedType(inner)).build(),
        new FileDescriptor[0]);
    ProtobufWireFormatEncoder glue = new ProtobufWireFormatEncoder(new MessageIndexFinder());
    Descriptor outer = file.findMessageTypeByName("A");
    for (Descriptor type : List.of(file.findMessageTypeByName("Z"), outer, outer.findNestedTypeByName("Inner"))) {
      DynamicMessage message =
          DynamicMessage.newBuilder(type).setField(type.findFieldByName("x"), type.getName()).build();
      add("glue protobuf " + type.getName(), encoder("NONE").write(glue.encode(message, file), VERSION),
          new RecordHeaders());
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      out.write(new byte[] {0, 0, 0, 0, 0, 0, 0, 0, 7});
      Ref.newBuilder().setName(type.getName()).build().writeDelimitedTo(out);
      message.writeTo(out);
      add("apicurio protobuf " + type.getName(), out.toByteArray(), new RecordHeaders());
      RecordHeaders headers = new RecordHeaders();
      headers.add("apicurio.value.globalId", new byte[] {0, 0, 0, 0, 0, 0, 0, 7});
      new ProtobufSerdeHeaders(new HashMap<>(), false).addProtobufTypeNameHeader(headers, type.getName());
      add("apicurio protobuf header " + type.getName(), message.toByteArray(), headers);
    }
  }

  static void add(String name, byte[] value, Iterable<Header> headers) {
    List<String> shown = new ArrayList<>();
    for (Header header : headers) {
      shown.add("[" + text(header.key()) + ", \"" + HexFormat.of().formatHex(header.value()) + "\"]");
    }
    lines.add("  [" + text(name) + ", \"" + HexFormat.of().formatHex(value) + "\", [" + String.join(", ", shown) + "]]");
  }

  static String text(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
  }
}
