/** Captures a disk as the server requested: reads it, uploads the image, and reports the run (docs/decisions/0022). */
import { PACKED_FORMAT } from '../../../appliance/disk-images.ts'
import { CAPTURE_LEVEL, describeOrigin } from '../../engine/capture/rules/capture.ts'
import { milestone, NOTHING_DONE } from '../../engine/flash/rules/run-report.ts'
import { renderError } from '../../kit/foundation/fault.ts'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import type { InventoryDisk } from '../../engine/inventory/rules/machine.ts'
import type { ProgressPost } from '../../engine/inventory/rules/run.ts'
import { openCapture, runCapture, type Captured } from '../../engine/capture/capturer.ts'
import { toUpload } from '../../engine/capture/upload-client.ts'
import { createReporter, type Reporter } from '../link/reporter.ts'
import { TIMES, type RemoteDependencies } from './remote-hooks.ts'
import { renderLog } from './remote-log.ts'
import type { RemoteMachine } from './remote-machine.ts'
import type { RemotePlan } from './remote-plan.ts'

type CapturePlan = Extract<RemotePlan, { mode: 'capture' }>

interface CaptureSession {
  readonly plan: CapturePlan
  readonly machine: RemoteMachine
  readonly given: RemoteDependencies
  /** The disk of the plan; it is refused in words where it is not there. */
  readonly disk: Result<InventoryDisk, string>
}

/** Returns when the server has the end of the run, or cannot be reached; refused with the reason. */
export async function captureDisk(session: CaptureSession): Promise<Result<null, string>> {
  const { machine, given } = session
  const times = { ...TIMES, ...given.times }
  const { signal, now } = given
  const reporter = createReporter({
    client: machine.client,
    signal,
    now,
    retryMs: times.retry,
  })
  const run = createRun(session, reporter)
  try {
    const captured = await carryOut(session, run)
    run.end({ phase: 'done', verified: true }, captured)
    await reporter.flush(times.report)
    return accept(null)
  } catch (thrown) {
    const reason = renderError(thrown)
    run.end({ phase: signal.aborted ? 'cancelled' : 'failed', reason: reason.slice(0, 500) }, null)
    await reporter.flush(times.report)
    const transcript = machine.transcript
    await machine.client.sendLog(
      run.id,
      await renderLog({ hardware: given.hardware, transcript }, run.steps, reason),
    )
    return refuse(reason)
  }
}

type Run = ReturnType<typeof createRun>

/** What is reported of it. */
function createRun({ plan, disk, machine }: CaptureSession, reporter: Reporter) {
  const id = crypto.randomUUID()
  const image = { name: plan.name, format: PACKED_FORMAT }
  const facts = { run: id, mode: 'capture', disk: describeDisk(plan, disk) } as const
  const steps: string[] = []
  let last: ProgressPost = { ...NOTHING_DONE, ...facts, phase: 'started', image }
  reporter.post(last)
  return {
    id,
    steps,
    post(report: Pick<ProgressPost, 'phase'> & Partial<ProgressPost>) {
      const next = { ...last, ...report }
      const step = milestone(last, next, null)
      if (step !== null) {
        steps.push(step)
        machine.say(step)
      }
      last = next
      reporter.post(next)
    },
    end(result: Pick<ProgressPost, 'phase'> & Partial<ProgressPost>, captured: Captured | null) {
      reporter.post({
        ...last,
        ...facts,
        rate: null,
        eta_seconds: null,
        ...(captured === null ? { image } : describeMade(image, captured)),
        ...result,
      })
    },
  }
}

const describeMade = (
  image: NonNullable<ProgressPost['image']>,
  { sha256, storedBytes, usedBytes }: Captured,
): Partial<ProgressPost> => ({
  image: { ...image, sha256, size_bytes: storedBytes },
  bytes_read: usedBytes,
  bytes_written: usedBytes,
  total_bytes: usedBytes,
})

function describeDisk(plan: CapturePlan, disk: CaptureSession['disk']): ProgressPost['disk'] {
  // A disk that is not there is known by what it should have been called alone.
  if (!disk.ok) return { path: '', serial: plan.disk }
  const { path, model, size_bytes, tran } = disk.value
  return { path, model, tran, serial: plan.disk, size_bytes: size_bytes ?? null }
}

async function carryOut(
  { plan, machine, given, disk }: CaptureSession,
  run: Run,
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
      // The cache is on the network that the machine booted from: no proxy leads there.
      env: { FLASHER_CA_FILE: env['FLASHER_CA_FILE'] },
      signal,
      onSent: () => run.post({ phase: 'verify', rate: null, eta_seconds: null }),
    },
    warnings,
  )
  return await runCapture(opened, upload, {
    level: CAPTURE_LEVEL,
    signal,
    onProgress({ phase, bytes_read, bytes_written, total_bytes, rate, eta_seconds }) {
      run.post({ phase, bytes_read, bytes_written, total_bytes, rate, eta_seconds })
    },
  })
}
