/** What the demo asks of its server: the image, the machine, its runs, and arming it. */
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import type { Bmc } from './bmc.ts'
import { MACHINE } from './machine.ts'
import type { Server } from './server.ts'
import type { Snapshot, Run } from './machine-progress.ts'

const ImagesSchema = z.array(z.object({ name: z.string(), ref: z.string() }))
const MachinesSchema = z.array(
  z.object({
    mac: z.string(),
    boot_mode: z.string(),
    bty_image_ref: z.string().nullable(),
    known_disks: z.array(z.object({ serial: z.string().nullable(), size: z.string() })).nullable(),
  }),
)
const RunsSchema = z.object({
  runs: z.array(
    z.object({
      id: z.string(),
      phase: z.string(),
      state: z.string(),
      bytes_written: z.number(),
      total_bytes: z.number().nullable(),
      rate: z.number().nullable(),
      average_rate: z.number().nullable(),
      verified: z.boolean().nullable(),
      reason: z.string().nullable(),
      proof: z
        .object({
          state: z.string(),
          seconds: z.number().nullable(),
          reason: z.string().nullable(),
        })
        .nullable(),
    }),
  ),
})
const FetchesSchema = z.object({
  fetches: z.array(
    z.object({
      tag: z.string(),
      status: z.string(),
      error: z.string().nullable(),
      bytes_done: z.number(),
      bytes_total: z.number().nullable(),
    }),
  ),
})

type Ask = Pick<Server, 'ask'>

export interface OfferedImage {
  readonly name: string
  readonly ref: string
}

const POLL_MS = 250

/** Resolves once the server offers the image, which the cache finds in its folder. */
export async function awaitImage(
  { ask }: Ask,
  name: string,
  signal: AbortSignal,
): Promise<OfferedImage> {
  for (;;) {
    const images = ImagesSchema.parse(await ask('/images'))
    const found = images.find((image) => image.name === name)
    if (found !== undefined) return found
    await ask('/admin/cache/refresh', {})
    await pause(POLL_MS, undefined, { signal })
  }
}

/** Fetches a release, as the button of the Netboot page does. `onProgress`: from 0 to 1, null while unknown. */
export async function fetchRelease(
  { ask }: Ask,
  onProgress: (part: number | null) => void,
  signal: AbortSignal,
): Promise<void> {
  await ask('/boot/releases', {})
  for (;;) {
    const [job] = FetchesSchema.parse(await ask('/boot/releases')).fetches
    if (job?.status === 'completed') return
    if (job !== undefined && job.error !== null) {
      throw new Error(`the live system could not be fetched: ${job.error}`)
    }
    onProgress(job === undefined || !job.bytes_total ? null : job.bytes_done / job.bytes_total)
    await pause(POLL_MS, undefined, { signal })
  }
}

/** The states in which a machine is armed or being flashed, as the pages search for them. */
const UNDER_WAY = '-state:ready -state:done -state:failed -state:needs-you'
const path = `/machines/${MACHINE.mac}`

/** `image`: what is known by name; another one is the person's business. */
export async function readSnapshot(
  { ask }: Ask,
  image: OfferedImage,
): Promise<Omit<Snapshot, 'serial'>> {
  const all = MachinesSchema.parse(await ask('/machines'))
  const found = all.find(({ mac }) => mac === MACHINE.mac)
  if (found === undefined) return { machine: null, run: null }
  const armed = MachinesSchema.parse(await ask(`/machines?q=${encodeURIComponent(UNDER_WAY)}`))
  const machine: Snapshot['machine'] = {
    disks: found.known_disks,
    isArmed:
      found.boot_mode.startsWith('flasher-flash') && armed.some(({ mac }) => mac === MACHINE.mac),
    image: found.bty_image_ref === image.ref ? image.name : null,
  }
  return { machine, run: await readLastRun({ ask }) }
}

async function readLastRun({ ask }: Ask): Promise<Run | null> {
  const [run] = RunsSchema.parse(await ask(`${path}/runs?limit=1`)).runs
  if (run === undefined) return null
  const { id, phase, state, rate, reason, proof } = run
  return {
    id,
    phase,
    state,
    rate,
    reason,
    proof,
    bytesWritten: run.bytes_written,
    totalBytes: run.total_bytes,
    averageRate: run.average_rate,
    isVerified: run.verified,
  }
}

/** Selects image and disk and arms the machine, as its page does. */
export async function arm({ ask }: Ask, image: OfferedImage, serial: string): Promise<void> {
  await ask(`${path}/flash`, {
    bty_image_ref: image.ref,
    boot_mode: 'flasher-flash-once',
    target_disk_serial: serial,
  })
}

/** The name of its first-boot template: with it the new system has an address to call. */
const TEMPLATE = 'hello-flasher'

interface Equipment {
  readonly bmc: Pick<Bmc, 'address' | 'user' | 'password'> | null
  /** Whether the image calls the server once it has booted. */
  readonly calls: boolean
}

/** Tells the server how the machine's power is reached, and has its new system call. An earlier demo may have left either. */
export async function equip({ ask }: Ask, { bmc, calls }: Equipment): Promise<void> {
  if (calls) await ask(`/first-boot/${TEMPLATE}`, { hostname: TEMPLATE }, 'PUT')
  const parameters = { first_boot: calls ? TEMPLATE : null }
  await ask('/machines/bulk', { action: 'first-boot', macs: [MACHINE.mac], parameters })
  if (bmc === null) {
    await ask(`${path}/power`, undefined, 'DELETE').catch(() => null)
    return
  }
  const { address, ...credential } = bmc
  await ask(`${path}/power`, { way: 'ipmi', address, firmware: 'bios', credential }, 'PUT')
}

/** Restarts the machine from the network by its BMC. Rejects with what the server says of it. */
export async function restartByBmc({ ask }: Ask): Promise<void> {
  await ask(`${path}/power`, { action: 'restart', boot: 'network' })
}
