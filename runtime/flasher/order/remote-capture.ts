/** Captures a disk as the server requested: reads it, uploads the image, and reports the run (docs/decisions/0022). */
import { PACKED_FORMAT } from '#appliance/disk-images.ts'
import { CAPTURE_LEVEL, describeOrigin } from '#engine/capture/rules/capture.ts'
import { NOTHING_DONE } from '#engine/flash/rules/run-report.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import type { ProgressPost } from '#engine/inventory/rules/run.ts'
import { openCapture, runCapture, type Captured } from '#engine/capture/capturer.ts'
import { toUpload } from '#engine/capture/upload-client.ts'
import { type RemoteDependencies, createRun, type ReportedRun } from './remote-hooks.ts'
import type { ServerClient } from '#flasher/link/server-client.ts'
import type { DiskChoice } from './rules/flash-choice.ts'
import type { CaptureByPlan } from './rules/plan.ts'

interface CaptureSession {
  readonly plan: CaptureByPlan
  readonly machine: {
    readonly client: ServerClient
    transcript(): readonly string[]
    say(line: string): void
    choose(path: string): DiskChoice | null
  }
  readonly given: RemoteDependencies
  /** Refused in words. */
  readonly disk: Result<InventoryDisk, string>
}

/** Returns when the server has the end of the run, or cannot be reached. */
export async function captureDisk(session: CaptureSession): Promise<Result<null, string>> {
  const { machine, given } = session
  const { client, transcript } = machine
  const run = createRun(startOf(session), {
    ...given,
    client,
    onStep: ({ text, isShare }) => (isShare ? machine.say(text) : undefined),
  })
  run.post(run.last())
  try {
    const captured = await carryOut(session, run)
    const made = describeMade(imageOf(session), captured)
    run.post({ ...run.last(), ...ENDED, ...made, phase: 'done', verified: true })
    await run.flush(run.times.report)
    return accept(null)
  } catch (thrown) {
    const reason = renderError(thrown)
    const phase = given.signal.aborted ? 'cancelled' : 'failed'
    run.post({ ...run.last(), ...ENDED, phase, reason: reason.slice(0, 500) })
    await run.flush(run.times.report)
    await run.sendLog(reason, { ...given, transcript })
    return refuse(reason)
  }
}

const imageOf = ({ plan }: CaptureSession) => ({ name: plan.name, format: PACKED_FORMAT })

const startOf = (session: CaptureSession): ProgressPost => ({
  ...NOTHING_DONE,
  run: crypto.randomUUID(),
  mode: 'capture',
  phase: 'started',
  disk: describeDisk(session.plan, session.disk),
  image: imageOf(session),
})

const ENDED = { rate: null, eta_seconds: null } as const

const describeMade = (
  image: NonNullable<ProgressPost['image']>,
  { sha256, storedBytes, usedBytes }: Captured,
): Partial<ProgressPost> => ({
  image: { ...image, sha256, size_bytes: storedBytes },
  bytes_read: usedBytes,
  bytes_written: usedBytes,
  total_bytes: usedBytes,
})

function describeDisk(plan: CaptureByPlan, disk: CaptureSession['disk']): ProgressPost['disk'] {
  // A missing disk is known only by its ordered name.
  if (!disk.ok) return { path: '', serial: plan.disk }
  const { path, model, size_bytes, tran } = disk.value
  return { path, model, tran, serial: plan.disk, size_bytes: size_bytes ?? null }
}

async function carryOut(
  { plan, machine, given, disk }: CaptureSession,
  run: ReportedRun,
): Promise<Captured> {
  if (!disk.ok) throw new Error(disk.refusal)
  const { env, signal } = given
  const { path } = disk.value
  const { generalize } = plan
  const chosen = machine.choose(path)?.identity ?? null
  await using opened = await openCapture(
    { env, isRoot: true },
    { source: path, chosen, generalize },
    signal,
  )
  const { source, warnings } = describeOrigin(opened, generalize)
  const upload = toUpload(
    {
      ...plan.upload,
      name: plan.name,
      source: { mac: machine.client.mac, run: run.id, ...source },
      // No proxy leads to the network that the machine booted from.
      env: { FLASHER_CA_FILE: env['FLASHER_CA_FILE'] },
      signal,
      onSent: () => run.post({ ...run.last(), ...ENDED, phase: 'verify' }),
    },
    warnings,
  )
  return await runCapture(opened, upload, {
    level: CAPTURE_LEVEL,
    signal,
    onProgress({ phase, bytes_read, bytes_written, total_bytes, rate, eta_seconds }) {
      const counts = { bytes_read, bytes_written, total_bytes, rate, eta_seconds }
      run.post({ ...run.last(), ...counts, phase })
    },
  })
}
