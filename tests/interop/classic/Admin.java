import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** mqadmin's commands, one a line of standard input with its words between tabs, in one Java process. No words: help. */
public class Admin {
    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                MQAdminStartup.main0(line.isEmpty() ? new String[0] : line.split("\t"), null);
            } catch (Throwable failure) {
                failure.printStackTrace(System.out);
            }
            System.out.println("\n-- done --");
            System.out.flush();
        }
        System.exit(0);
    }
}
