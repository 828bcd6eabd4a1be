import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Kafka's generated classes for messages. A line "apis" is answered with their versions; "request KEY VERSION JSON"
 * (or "response ...") with the frame in hexadecimal, a space, and the JSON of what Kafka reads from the frame.
 */
public class Messages {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = line.equals("apis") ? apis() : answer(line.split(" ", 4));
            } catch (Exception e) {
                answer = "error " + e;
            }
            out.println(answer.replace('\n', ' '));
            out.flush();
        }
    }

    private static String apis() {
        ObjectNode versions = MAPPER.createObjectNode();
        for (ApiMessageType type : ApiMessageType.values()) {
            versions.putArray(String.valueOf(type.apiKey()))
                .add(type.lowestSupportedVersion()).add(type.highestSupportedVersion(true));
        }
        return versions.toString();
    }

    private static String answer(String[] words) throws Exception {
        ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(words[1]));
        short version = Short.parseShort(words[2]);
        boolean request = words[0].equals("request");
        ApiMessage empty = request ? type.newRequest() : type.newResponse();
        Class<?> converter = Class.forName(empty.getClass().getName() + "JsonConverter");
        Object body = converter.getMethod("read", JsonNode.class, short.class)
            .invoke(null, MAPPER.readTree(words[3]), version);
        ApiMessage header = request
            ? new RequestHeaderData().setRequestApiKey(type.apiKey()).setRequestApiVersion(version)
                .setCorrelationId(7).setClientId("client")
            : new ResponseHeaderData().setCorrelationId(7);
        short headerVersion = request ? type.requestHeaderVersion(version) : type.responseHeaderVersion(version);
        byte[] frame = concat(
            bytes(header, headerVersion), bytes((ApiMessage) body, version));
        var readable = new ByteBufferAccessor(ByteBuffer.wrap(frame));
        header.read(readable, headerVersion);
        empty.read(readable, version);
        Object json = converter.getMethod("write", empty.getClass(), short.class).invoke(null, empty, version);
        return HexFormat.of().formatHex(frame) + " " + json;
    }

    private static byte[] bytes(ApiMessage message, short version) {
        var cache = new ObjectSerializationCache();
        var buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    private static byte[] concat(byte[] first, byte[] second) {
        return ByteBuffer.allocate(first.length + second.length).put(first).put(second).array();
    }
}
