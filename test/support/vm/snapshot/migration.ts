/** Saves the state of a virtual machine to a file, and loads it from there. */
import type { Monitor } from '../qemu-monitor.ts'
import { z } from 'zod'
import { waitUntil } from '#test/support/waiting.ts'

const MigrationSchema = z.object({ status: z.string().optional() })
const StatusSchema = z.object({ status: z.string() })

/** Milliseconds; it is the devices' state alone, some 10 MB. */
const PATIENCE_MS = 60_000

/** The memory is a file of its own, which stays out of the state. */
const WITHOUT_MEMORY = {
  capabilities: [{ capability: 'x-ignore-shared', state: true }],
} as const

/** Stops the machine, and writes all but its memory to `path`. */
export async function saveState(monitor: Monitor, path: string): Promise<void> {
  await monitor.execute('stop')
  await monitor.execute('migrate-set-capabilities', WITHOUT_MEMORY)
  await monitor.execute('migrate', { uri: `exec:cat > ${path}` })
  let last = ''
  await waitUntil(
    async () => {
      last = MigrationSchema.parse(await monitor.execute('query-migrate')).status ?? ''
      if (last === 'failed') throw new Error('the state of the machine could not be saved')
      return last === 'completed'
    },
    () => `saving is ${last}`,
    PATIENCE_MS,
  )
}

/** Loads it into a machine that was started with `-incoming defer`; it does not run yet. */
export async function loadState(monitor: Monitor, path: string): Promise<void> {
  await monitor.execute('migrate-set-capabilities', WITHOUT_MEMORY)
  await monitor.execute('migrate-incoming', { uri: `exec:cat ${path}` })
  let last = ''
  await waitUntil(
    async () => {
      last = StatusSchema.parse(await monitor.execute('query-status')).status
      return last === 'paused' || last === 'postmigrate'
    },
    () => `the machine is ${last}`,
    PATIENCE_MS,
  )
}
