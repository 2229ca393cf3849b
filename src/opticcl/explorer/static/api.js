// Questions to the server. Addresses are relative, so that the token of the page's own address is in each.

async function json(path, options) {
  const response = await fetch(path, options);
  const body = await response.json().catch(() => ({ error: `the server answers ${response.status}` }));
  if (!response.ok) throw new Error(body.error ?? `the server answers ${response.status}`);
  return body;
}

/** Names, colours and open files. */
export const start = () => json("api/start");

/** Send a plan file; returns its key. */
export async function sendPlan(file) {
  if (file.size > 1e6) throw new Error(`${file.name}: more than 1 MB; give it to opticcl explore on the command line`);
  return (await json(`api/plans/${encodeURIComponent(file.name)}`, { method: "POST", body: file })).key;
}

const FINAL = { cancelled: "cancelled", late: "it took longer than --time-limit and was ended", crashed: "its process ended; try fewer nodes" };

/**
 * Ask a question and wait for its answer: what the command prints with --json.
 * `signal` cancels it, on the server too; `report` is called with a command and with lines of progress.
 */
export async function ask(view, parameters, { signal, report } = {}) {
  const body = JSON.stringify({ view, ...parameters });
  const { id, command } = await json("api/questions", { method: "POST", body, signal });
  report?.({ command });
  const cancel = () => fetch(`api/questions/${id}`, { method: "DELETE", keepalive: true }).catch(() => {});
  signal?.addEventListener("abort", cancel, { once: true });
  addEventListener("pagehide", cancel);
  try {
    for (;;) {
      const found = await json(`api/questions/${id}`, { signal });
      if (found.state === "done") return found.answer;
      if (found.state === "refused") throw new Error(found.error.replace(/^opticcl: /, ""));
      if (found.state in FINAL) throw new Error(FINAL[found.state]);
      report?.({ progress: found.progress || found.state });
    }
  } finally {
    signal?.removeEventListener("abort", cancel);
    removeEventListener("pagehide", cancel);
  }
}
