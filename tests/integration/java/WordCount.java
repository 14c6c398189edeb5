import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;

/** Counts words until its input ends: WordCount FROM TO property=value... */
public class WordCount {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("default.key.serde", Serdes.StringSerde.class.getName());
        properties.put("default.value.serde", Serdes.StringSerde.class.getName());
        for (String pair : Arrays.asList(arguments).subList(2, arguments.length)) {
            String[] parts = pair.split("=", 2);
            properties.put(parts[0], parts[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream(arguments[0]);
        lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(Object::toString)
            .to(arguments[1]);
        try (KafkaStreams streams = new KafkaStreams(builder.build(), properties)) {
            streams.start();
            while (System.in.read() >= 0) { }
        }
    }
}
