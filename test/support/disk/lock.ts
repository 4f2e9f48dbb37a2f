/** One process at a time: a file that names its owner and outlives no owner's death. */
import { randomUUID } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const PATIENCE = 15 * 60 * 1000
const PAUSE = 300

/** Waits while a living process has it; after 15 minutes of that, takes it away. */
export async function withLock<Value>(path: string, act: () => Promise<Value>): Promise<Value> {
  const deadline = Date.now() + PATIENCE
  while (!(await tryTake(path))) {
    const isHeld = isAlive(Number(await readFile(path, 'utf8').catch(() => '')))
    if (isHeld && Date.now() < deadline) await sleep(PAUSE)
    else await rm(path, { force: true })
  }
  try {
    return await act()
  } finally {
    await rm(path, { force: true })
  }
}

/** By a link, so that the file has its content from the first moment. */
async function tryTake(path: string): Promise<boolean> {
  const draft = `${path}.${process.pid}.${randomUUID()}`
  await writeFile(draft, String(process.pid))
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft)
  }
}

function isAlive(pid: number): boolean {
  if (!(pid > 0)) return false
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
