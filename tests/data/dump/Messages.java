import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.utils.ImplicitLinkedHashCollection;

/** Prints messages of internal topics in every version, and what Kafka's JSON converters make of them. */
@SuppressWarnings({"unchecked", "rawtypes"})
public class Messages {
    static final Random RANDOM = new Random(7);

    public static void main(String[] args) throws Exception {
        for (var type : org.apache.kafka.coordinator.group.generated.CoordinatorRecordType.values()) {
            print("offsets", "key", type.id(), type.newRecordKey(),
                (m, v) -> org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters.writeRecordKeyAsJson(m));
            print("offsets", "value", type.id(), type.newRecordValue(),
                org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters::writeRecordValueAsJson);
        }
        for (var type : org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordType.values()) {
            print("transactions", "value", type.id(), type.newRecordValue(),
                org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordJsonConverters::writeRecordValueAsJson);
        }
        for (var type : MetadataRecordType.values()) {
            print("metadata", "value", type.id(), type.newMetadataRecord(), MetadataJsonConverters::writeJson);
        }
        for (var type : org.apache.kafka.coordinator.share.generated.CoordinatorRecordType.values()) {
            print("share-group-state", "key", type.id(), type.newRecordKey(),
                (m, v) -> org.apache.kafka.coordinator.share.generated.CoordinatorRecordJsonConverters.writeRecordKeyAsJson(m));
            print("share-group-state", "value", type.id(), type.newRecordValue(),
                org.apache.kafka.coordinator.share.generated.CoordinatorRecordJsonConverters::writeRecordValueAsJson);
        }
        for (var type : org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType.values()) {
            print("remote-log-metadata", "value", type.id(), type.newMetadataRecord(),
                org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataJsonConverters::writeJson);
        }
    }

    interface Json {
        JsonNode of(ApiMessage message, short version);
    }

    static void print(String topic, String part, short id, ApiMessage blank, Json json) throws Exception {
        for (short v = blank.lowestSupportedVersion(); v <= blank.highestSupportedVersion(); v++) {
            for (int round = 0; round < 6; round++) {
                // First with default fields, then with random ones; fields that a version lacks are lost in
                // writing.
                ApiMessage message = blank.getClass().getConstructor().newInstance();
                if (round > 0) fill(message);
                try {
                    byte[] bytes = MessageUtil.toByteBufferAccessor(message, v).buffer().array();
                    ApiMessage read = blank.getClass().getConstructor().newInstance();
                    read.read(new org.apache.kafka.common.protocol.ByteBufferAccessor(java.nio.ByteBuffer.wrap(bytes)), v);
                    System.out.printf("{\"topic\":\"%s\",\"part\":\"%s\",\"type\":%d,\"version\":%d,\"hex\":\"%s\",\"json\":%s}%n",
                        topic, part, id, v, HexFormat.of().formatHex(bytes), json.of(read, v));
                } catch (RuntimeException e) {
                    // This version cannot express the random fields.
                }
            }
        }
    }

    static Object fill(Object message) throws Exception {
        for (Field field : message.getClass().getDeclaredFields()) {
            boolean own = !Modifier.isStatic(field.getModifiers()) && !field.getName().startsWith("_");
            if (own && !List.of("next", "prev").contains(field.getName()) && RANDOM.nextInt(4) > 0) {
                field.setAccessible(true);
                field.set(message, value(field.getType(), field.getGenericType()));
            }
        }
        return message;
    }

    static Object value(Class<?> kind, Type type) throws Exception {
        if (!kind.isPrimitive() && RANDOM.nextInt(16) == 0) return null;
        int n = RANDOM.nextInt(100) - 10;
        if (kind == byte.class || kind == Byte.class) return (byte) n;
        if (kind == short.class || kind == Short.class) return (short) n;
        if (kind == int.class || kind == Integer.class) return n < 0 ? n : RANDOM.nextInt(1 << 16);
        if (kind == long.class || kind == Long.class) return RANDOM.nextLong();
        if (kind == double.class) return n / 4.0;
        if (kind == boolean.class) return n % 2 == 0;
        if (kind == String.class) return "text " + "\u00e9\"\n".substring(0, Math.floorMod(n, 4)) + n;
        if (kind == Uuid.class) return new Uuid(RANDOM.nextLong(), RANDOM.nextLong());
        if (kind == byte[].class) return new byte[] {(byte) n, 0, 1};
        if (List.class.isAssignableFrom(kind)) {
            Type element = ((ParameterizedType) type).getActualTypeArguments()[0];
            List<Object> list = new ArrayList<>();
            for (int i = RANDOM.nextInt(3); i > 0; i--) list.add(value((Class<?>) element, element));
            return list;
        }
        if (ImplicitLinkedHashCollection.class.isAssignableFrom(kind)) {
            Type element = ((ParameterizedType) kind.getGenericSuperclass()).getActualTypeArguments()[0];
            var list = (ImplicitLinkedHashCollection) kind.getConstructor().newInstance();
            list.add((ImplicitLinkedHashCollection.Element) value((Class<?>) element, element));
            return list;
        }
        return fill(kind.getConstructor().newInstance());
    }
}
