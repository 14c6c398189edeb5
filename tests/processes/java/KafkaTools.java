import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;

/**
 * Runs Kafka's tools one after the other: each line is a class and its arguments, with tabs between.
 *
 * <p>The answer is a line with the exit code and the number of bytes that follow it. Tools may not
 * read standard input, and none may end the JVM.
 */
public class KafkaTools {
  /** Thrown instead of an exit: the rest of the tool must not run. */
  static class Exited extends Error {
    Exited() {
      super(null, null, false, false);
    }
  }

  /** The first exit of a tool. Some catch the error above as a failure, and exit with another code. */
  static class Exit {
    Integer code;
    int shownBytes;
  }

  public static void main(String[] arguments) throws Exception {
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var answers = System.out;
    var shown = new ByteArrayOutputStream();
    // Scala's Console keeps the stream that it has found first, so there is one for all tools.
    var stream = new PrintStream(shown, true, StandardCharsets.UTF_8);
    System.setOut(stream);
    System.setErr(stream);
    var exit = new Exit();
    org.apache.kafka.common.utils.Exit.setExitProcedure((code, message) -> {
      if (exit.code == null) {
        stream.flush();
        exit.code = code;
        exit.shownBytes = shown.size();
      }
      throw new Exited();
    });
    for (var line = input.readLine(); line != null; line = input.readLine()) {
      shown.reset();
      exit.code = null;
      var code = run(line.split("\t", -1), stream);
      stream.flush();
      var length = exit.code == null ? shown.size() : exit.shownBytes;
      answers.println((exit.code == null ? code : exit.code) + " " + length);
      answers.write(shown.toByteArray(), 0, length);
      answers.flush();
    }
  }

  static int run(String[] words, PrintStream stream) throws Exception {
    var arguments = new String[words.length - 1];
    System.arraycopy(words, 1, arguments, 0, arguments.length);
    var main = Class.forName(words[0]).getMethod("main", String[].class);
    try {
      main.invoke(null, (Object) arguments);
      return 0;
    } catch (InvocationTargetException failure) {
      failure.getCause().printStackTrace(stream);
      return 1;
    }
  }
}
