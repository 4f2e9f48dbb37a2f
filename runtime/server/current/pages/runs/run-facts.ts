/** The facts of a run as rows: what was written, and where. */
import { printable } from '#kit/foundation/printable.ts'
import type { Run, RunMode } from '#engine/inventory/rules/run.ts'
import { PAGES } from '#server/texts/texts.ts'
import { copyable, renderBytes, renderDiskBytes } from '#kit/web/ui/elements.ts'
import { DIM, fillHtml, html, type Content } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { renderArmer, renderRateOf, renderVerified } from '../view/run-table.ts'

const t = PAGES.runs.run

const MODES: Readonly<Record<RunMode, string>> = {
  flash: t.target.byServer,
  interactive: t.target.inWizard,
  capture: t.target.capture,
}

export type RunRows = readonly (readonly [string, Content])[]

export function listWritten(run: Run): RunRows {
  const { image, bottleneck, mode } = run
  const counted: RunRows = [
    [t.data.read, renderBytes(run.bytes_read)],
    [mode === 'capture' ? t.data.captured : t.data.written, renderBytes(run.bytes_written)],
    [t.data.delta, run.delta === null ? null : t.data.deltaStates[run.delta]],
    [t.data.kept, run.bytes_kept === null ? null : renderBytes(run.bytes_kept)],
    [t.data.rate, renderRateOf(run)],
  ]
  return [
    [t.data.image, image?.name],
    [t.data.source, image?.src ? printable(image.src) : null],
    [t.data.digest, copied(image?.sha256, 12)],
    [t.data.format, image?.format],
    ...(run.reported ? counted : []),
    [t.data.sources, renderSources(run)],
    [t.data.bottleneck, bottleneck],
    [t.data.verified, renderVerified(run)],
    [t.data.warning, run.warning],
    [t.data.server, run.server],
  ]
}

/** A line each; null: the image has one source. */
function renderSources({ sources }: Run): Content {
  if (sources === null) return null
  return sources.map(({ name, bytes, trouble }) => {
    const words = { name: printable(name), bytes: renderBytes(bytes) }
    return html`<div>
      ${trouble === null ? fillHtml(t.data.share, words) : fillHtml(t.data.shareUntil, { ...words, trouble: printable(trouble) })}
    </div>`
  })
}

export function listPlace(run: Run, clock: Clock): RunRows {
  const { id, mode, disk, armed_by: armer } = run
  return [
    [t.target.disk, disk?.model],
    [t.target.serial, copied(disk?.serial)],
    [t.target.size, disk?.size_bytes ? renderDiskBytes(disk.size_bytes) : null],
    [t.target.path, copied(disk?.path)],
    [t.target.connection, disk?.tran],
    [t.target.mode, MODES[mode]],
    [t.target.armedBy, armer === null ? null : renderBy(run)],
    [t.target.armed, armer === null ? null : renderTime(armer.at, clock)],
    [t.target.run, copied(id)],
  ]
}

/** `shown`: characters; undefined: all. */
const copied = (text: string | null | undefined, shown?: number): Content =>
  text ? copyable(text, printable(text.slice(0, shown))) : null

function renderBy(run: Run): Content {
  const actor = renderArmer(run)
  const ip = run.armed_by?.ip
  return ip ? fillHtml(t.target.armerFrom, { actor, ip, ...DIM }) : actor
}
