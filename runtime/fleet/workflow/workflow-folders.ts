/** The output folders of workflow runs, one for each, and their logs. */
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ifMissing } from '#kit/foundation/system-error.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { listOldRuns } from './rules/online-workflow.ts'
import { makeFolder, removeTree } from '#kit/host/folders.ts'

const WORKFLOW_LOG = 'workflow.log'

const MAX_RUNS = 10
/** Bytes of one log; output beyond it is left out. */
const MAX_LOG_BYTES = 16 * 2 ** 20

interface WorkflowLog extends AsyncDisposable {
  write(bytes: Uint8Array | string): Promise<void>
}

export type WorkflowFolders = ReturnType<typeof createWorkflowFolders>

/** A folder below `root` for each machine, and in it one for each run; the oldest are removed. */
export function createWorkflowFolders(root: string) {
  const folderOf = (mac: Mac) => join(root, mac)
  return {
    root,
    async make(mac: Mac, run: string): Promise<string> {
      const folder = folderOf(mac)
      const path = join(folder, run)
      await makeFolder(path, 0o700)
      for (const old of listOldRuns(await readdir(folder), MAX_RUNS)) {
        await removeTree(join(folder, old))
      }
      return path
    },
    /** Starts at the beginning of a line. Null: no log. */
    readTail: (mac: Mac, run: string, most: number): Promise<string | null> =>
      readTail(join(folderOf(mac), run, WORKFLOW_LOG), most),
    clear: (mac: Mac): Promise<void> => removeTree(folderOf(mac)),
  }
}

export async function openWorkflowLog(folder: string): Promise<WorkflowLog> {
  const file = await open(join(folder, WORKFLOW_LOG), 'a', 0o600)
  let left = MAX_LOG_BYTES
  let last: Promise<unknown> = Promise.resolve()
  return {
    async write(given) {
      const bytes = Buffer.from(given)
      const kept = bytes.subarray(0, left)
      const isFull = left > 0 && kept.length < bytes.length
      left -= kept.length
      last = last
        .then(() => file.appendFile(kept))
        .then(() => (isFull ? file.appendFile(CUT) : undefined))
        .catch(() => undefined)
      await last
    },
    async [Symbol.asyncDispose]() {
      await last
      await file.close()
    },
  }
}

const CUT = '\nflasher: the log is full; the rest was left out\n'

async function readTail(path: string, most: number): Promise<string | null> {
  await using file = await open(path).catch(ifMissing(null))
  if (file === null) return null
  const { size } = await file.stat()
  const into = Buffer.alloc(Math.min(size, most))
  const start = size - into.length
  const { bytesRead } = await file.read(into, 0, into.length, start)
  const text = into.toString('utf8', 0, bytesRead)
  return start === 0 ? text : text.slice(text.indexOf('\n') + 1)
}
