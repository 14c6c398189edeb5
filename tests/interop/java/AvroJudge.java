import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.stream.Collectors;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaNormalization;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.Decoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;

/** Answers one question a line with one line: a command and its arguments, with tabs between them. */
public class AvroJudge {
  public static void main(String[] arguments) throws Exception {
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (var line = input.readLine(); line != null; line = input.readLine()) {
      String answer;
      try {
        answer = answer(line.split("\t", -1));
      } catch (Exception | StackOverflowError error) {
        answer = "! " + error.toString().replaceAll("\\s+", " ");
      }
      output.println(answer);
    }
  }

  static String answer(String[] question) throws Exception {
    switch (question[0]) {
      case "print":
        return schema(question[1]).toString();
      case "fingerprint":
        return SchemaNormalization.toParsingForm(schema(question[1]));
      case "compare":
        return compare(schema(question[1]), schema(question[2]));
      case "resolve":
        return hex(schema(question[2]), read(schema(question[1]), schema(question[2]), question[3]));
      case "json":
        return json(schema(question[1]), read(schema(question[1]), schema(question[1]), question[2]));
      case "of-json":
        return ofJson(schema(question[1]), question[2]);
      case "recode":
        return recode(question[1], question[2], question[3]);
      default:
        throw new IllegalArgumentException(question[0]);
    }
  }

  static Schema schema(String text) {
    return new Schema.Parser().setValidateDefaults(true).parse(text);
  }

  static String compare(Schema reader, Schema writer) {
    var result = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult();
    return result.getIncompatibilities().stream()
        .map(found -> found.getType() + " " + found.getLocation() + " " + found.getMessage())
        .collect(Collectors.joining("\t"));
  }

  static Object read(Schema writer, Schema reader, String payload) throws Exception {
    var bytes = HexFormat.of().parseHex(payload);
    var decoder = DecoderFactory.get().binaryDecoder(bytes, null);
    return new GenericDatumReader<>(writer, reader).read(null, decoder);
  }

  static byte[] encoded(Schema schema, Object value) throws Exception {
    var output = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(output, null);
    new GenericDatumWriter<>(schema).write(value, encoder);
    encoder.flush();
    return output.toByteArray();
  }

  static String hex(Schema schema, Object value) throws Exception {
    return HexFormat.of().formatHex(encoded(schema, value));
  }

  static String json(Schema schema, Object value) throws Exception {
    var output = new ByteArrayOutputStream();
    JsonEncoder encoder = EncoderFactory.get().jsonEncoder(schema, output);
    new GenericDatumWriter<>(schema).write(value, encoder);
    encoder.flush();
    return output.toString(StandardCharsets.UTF_8);
  }

  static String ofJson(Schema schema, String text) throws Exception {
    Decoder decoder = DecoderFactory.get().jsonDecoder(schema, text);
    return hex(schema, new GenericDatumReader<>(schema).read(null, decoder));
  }

  /** Reads a container file and writes what it holds into another, with a codec. */
  static String recode(String from, String to, String codec) throws Exception {
    var count = 0;
    try (var reader = new DataFileReader<>(new File(from), new GenericDatumReader<>());
        var writer = new DataFileWriter<>(new GenericDatumWriter<>())) {
      writer.setCodec(CodecFactory.fromString(codec));
      writer.create(reader.getSchema(), new File(to));
      for (var value : reader) {
        writer.append(value);
        count++;
      }
    }
    return Integer.toString(count);
  }
}
