/** `flasher capture`: makes an image of a disk. */
import { Fault } from '../../../core/foundation/fault.ts'
import {
  checkFile,
  checkRoom,
  openCapture,
  runCapture,
  toFile,
  type CaptureSink,
  type OpenedCapture,
} from '../../../services/capture/capturer.ts'
import { createProgress } from '../../../terminal/text/progress.ts'
import {
  capturedFields,
  findingsFields,
  renderCaptured,
  renderFindings,
  warnOfIdentity,
  type CaptureFindings,
} from '../rules/capture-report.ts'
import { SUCCESS } from '../rules/exit-codes.ts'
import type { Session } from './session.ts'

interface Output {
  /** Looks whether what was found can be taken; what should be known of it. */
  readonly check: (opened: OpenedCapture) => string | null
  readonly sink: CaptureSink
}

export async function capture(session: Session): Promise<number> {
  const { given, environment, json, look, log, document } = session
  const { source = '', output: path = '', level = '' } = given.values
  const { signal } = environment
  const generalize = given.switches.has('generalize')
  const output = await openOutput(path)
  await using opened = await openCapture(environment, { source, generalize }, signal)
  const { parts, ranges, device } = opened
  const room = output.check(opened)
  const warnings = [room, warnOfIdentity(parts, generalize)].flatMap((one) => one ?? [])
  const findings: CaptureFindings = {
    source,
    output: path,
    sizeBytes: device.sizeBytes,
    usedBytes: ranges.totalBytes,
    generalize,
    parts,
    warnings,
  }
  if (!json) environment.stdout.write(renderFindings(findings))
  warnings.forEach(log.note)
  const fields = findingsFields(findings)
  if (given.switches.has('dry-run')) {
    if (json) document(fields)
    else environment.stdout.write('Dry run: nothing was written.\n')
    return SUCCESS
  }
  const progress = createProgress('text', { ...environment, look, storedBytes: () => null })
  const captured = await runCapture(opened, output.sink, {
    level: Number(level),
    signal,
    onProgress: progress.show,
  }).finally(progress.clear)
  if (json) document({ ...fields, ...capturedFields(path, captured) })
  else environment.stdout.write(renderCaptured(path, captured))
  return SUCCESS
}

async function openOutput(path: string): Promise<Output> {
  if (!path.endsWith('.img.zst')) {
    throw new Fault('misuse', `--output ${path} must end in .img.zst`, {
      hint: 'The name tells every program what the file holds.',
    })
  }
  const { freeBytes } = await checkFile(path)
  return { check: (opened) => checkRoom(opened, freeBytes), sink: toFile(path) }
}
