/** Owns: Prometheus and its promtool for tests: from PATH, or from Debian's package, unpacked beside and not installed. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { eventually } from "./cluster.js";

/** Path of a binary; `home` is where the package may be unpacked. */
export function prometheusBinary(name: "prometheus" | "promtool", home: string): string {
  if (spawnSync(name, ["--version"]).status === 0) return name;
  const binary = join(home, "usr", "bin", name);
  if (existsSync(binary)) return binary;
  execFileSync("apt-get", ["download", "prometheus"], { cwd: home, stdio: "ignore" });
  const [deb] = readdirSync(home).filter((file) => file.endsWith(".deb"));
  execFileSync("dpkg", ["-x", deb ?? "", "."], { cwd: home });
  if (!existsSync(binary)) throw new Error(`there is no ${name} on PATH, and Debian's package prometheus has none: install Prometheus`);
  return binary;
}

const Alerts = z.object({ data: z.object({ alerts: z.array(z.object({ state: z.string(), labels: z.record(z.string(), z.string()) })) }) });

const Result = z.object({ data: z.object({ result: z.array(z.object({ value: z.tuple([z.number(), z.string()]) })) }) });

export interface Prometheus {
  /** Labels of the alerts that fire. */
  firing(): Promise<Record<string, string>[]>;
  /** First value of a query; undefined where there is none. */
  value(query: string): Promise<number | undefined>;
  stop(): void;
}

/** Scrapes `targets` (job to port) twice a second. */
export async function startPrometheus(home: string, { port, targets, rules }: { readonly port: number; readonly targets: Readonly<Record<string, number>>; readonly rules: string }): Promise<Prometheus> {
  mkdirSync(join(home, "data"), { recursive: true });
  writeFileSync(join(home, "rules.yaml"), rules);
  writeFileSync(join(home, "prometheus.yaml"), JSON.stringify({
    global: { scrape_interval: "500ms", scrape_timeout: "400ms", evaluation_interval: "500ms" }, rule_files: ["rules.yaml"],
    scrape_configs: Object.entries(targets).map(([app, target]) => ({ job_name: `docket-${app}`, static_configs: [{ targets: [`127.0.0.1:${String(target)}`] }] })),
  }));
  const url = `http://127.0.0.1:${String(port)}`;
  const child = spawn(prometheusBinary("prometheus", home), [`--config.file=${join(home, "prometheus.yaml")}`, `--storage.tsdb.path=${join(home, "data")}`, `--web.listen-address=127.0.0.1:${String(port)}`, "--log.level=error"], { stdio: "ignore" });
  await eventually("Prometheus is ready", async () => ((await fetch(`${url}/-/ready`)).ok ? true : undefined), 20_000);
  return {
    firing: async () => Alerts.parse(await (await fetch(`${url}/api/v1/alerts`)).json()).data.alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels),
    value: async (query) => {
      const { data: { result } } = Result.parse(await (await fetch(`${url}/api/v1/query?query=${encodeURIComponent(query)}`)).json());
      return result[0] === undefined ? undefined : Number(result[0].value[1]);
    },
    stop: () => { child.kill("SIGKILL"); },
  };
}
