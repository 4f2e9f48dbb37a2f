/** Captured images: those that wait on the page of the images, and the page on which one is decided. */
import type { Capture } from './captures.ts'
import { renderSize } from '#kit/foundation/size.ts'
import {
  badge,
  banner,
  card,
  copyable,
  factList,
  renderBytes,
  renderDiskBytes,
  type Tone,
} from '#kit/web/ui/elements.ts'
import { hidden, textField } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'

const TONES: Readonly<Record<Capture['status'], Tone>> = {
  receiving: 'running',
  verifying: 'running',
  waiting: 'needs-you',
}

export const CAPTURE_PAGE = '/ui/capture'

export const renderCaptures = (captures: readonly Capture[], clock: Clock): Content =>
  captures.length === 0
    ? null
    : card({
        title: 'Captured images',
        id: 'captures',
        body: html`<p class="dim">Images captured from machines. Accept one to offer it.</p>
          <ul class="rows">
            ${captures.map((capture) => renderItem(capture, clock))}
          </ul>`,
      })

const CAPTURE_STATES = {
  receiving: 'uploading',
  verifying: 'being verified',
  waiting: 'waiting for review',
} as const

const renderItem = (capture: Capture, clock: Clock): Html =>
  html`<li id="capture-${capture.id}">
    ${badge(TONES[capture.status], CAPTURE_STATES[capture.status])}
    <span class="grow"
      ><bdi class="image-name">${capture.name}</bdi>
      <span class="dim">${renderOrigin(capture)}, ${renderAmount(capture)}</span></span
    >
    <span class="when">${renderTime(capture.touchedAt, clock)}</span>
    <a class="button" href="${address(CAPTURE_PAGE, { id: capture.id })}">Review</a>
  </li>`

const renderOrigin = ({ source }: Capture): Content =>
  source.mac === null ? 'captured manually' : html`from <bdi>${source.hostname ?? source.mac}</bdi>`

const renderAmount = ({ offset, end }: Capture): string =>
  end === null ? `${renderSize(offset)} received` : renderSize(end.bytes)

interface CaptureView {
  readonly capture: Capture
  readonly clock: Clock
  readonly typed: { readonly name: string; readonly error: string } | null
  /** Null: the server's address is unknown. */
  serverLink(path: string): string | null
}

export const renderCapture = (view: CaptureView): Html =>
  html`<div class="stack">
    ${renderWarnings(view.capture)} ${card({ body: renderFacts(view) })} ${renderDecision(view)}
  </div>`

function renderFacts({ capture, clock, serverLink }: CaptureView): Html {
  const { name, status, source, end } = capture
  const { disk } = source
  return factList([
    ['Name', html`<bdi class="image-name">${name}</bdi>`],
    ['State', badge(TONES[status], CAPTURE_STATES[status])],
    ['Size', end === null ? renderAmount(capture) : renderBytes(end.bytes)],
    ['SHA-256', end === null ? null : copyable(end.sha256)],
    ['SHA-256 of the frame index', end === null ? null : copyable(end.index_sha256)],
    ['Machine', renderMachine(source.mac, serverLink)],
    ['Host name', source.hostname === null ? null : html`<bdi>${source.hostname}</bdi>`],
    ['Disk', html`<bdi>${disk.model ?? disk.path ?? 'unknown'}</bdi>`],
    ['Serial number', disk.serial === null ? null : copyable(disk.serial)],
    ['Size of the disk', renderDiskBytes(disk.size_bytes)],
    ['Generalized', source.generalized ? 'Yes' : 'No'],
    ['Started', renderTime(capture.createdAt, clock)],
  ])
}

function renderMachine(mac: string | null, serverLink: CaptureView['serverLink']): Content {
  if (mac === null) return 'captured manually'
  const href = serverLink(`/ui/machines/${mac}`)
  const shown = html`<code>${mac}</code>`
  return href === null ? shown : html`<a href="${href}">${shown}</a>`
}

const renderWarnings = ({ end }: Capture): Content =>
  end === null || end.warnings.length === 0
    ? null
    : card({
        title: 'In this image',
        body: html`<p class="dim">All machines flashed with this image will share:</p>
          <ul class="rows">
            ${end.warnings.map((warning) => html`<li><bdi>${warning}</bdi></li>`)}
          </ul>`,
      })

const renderDecision = ({ capture, typed }: CaptureView): Html =>
  html`${
      capture.end === null
        ? banner('ready', 'You can accept it once it is complete and verified.')
        : card({
            title: 'Accept',
            body: html`<form method="post" action="${CAPTURE_PAGE}/accept">
              ${hidden({ id: capture.id })}
              ${textField({
                name: 'name',
                label: 'Name in the catalog',
                hint: 'Must end in .img.zst. An existing image is never replaced.',
                value: typed?.name ?? capture.name,
                error: typed?.error ?? null,
                required: true,
              })}
              <button class="primary">Accept</button>
            </form>`,
          })
    }
    <details>
      <summary>Reject…</summary>
      <form method="post" action="${CAPTURE_PAGE}/reject">
        ${hidden({ id: capture.id })}
        <p>
          ${fillHtml('{name} will be deleted from the cache. The machine’s disk is not changed.', { name: html`<strong>${capture.name}</strong>` })}
        </p>
        <button class="danger">Reject and delete</button>
      </form>
    </details>`
