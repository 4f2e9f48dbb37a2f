/** Captured images: those that wait on the page of the images, and the page on which one is decided. */
import type { Capture } from './captures.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
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

const [t, one] = [PAGES.images.captures, PAGES.images.capture]

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
        title: t.title,
        id: 'captures',
        body: html`<p class="dim">${t.hint}</p>
          <ul class="rows">
            ${captures.map((capture) => renderItem(capture, clock))}
          </ul>`,
      })

const renderItem = (capture: Capture, clock: Clock): Html =>
  html`<li id="capture-${capture.id}">
    ${badge(TONES[capture.status], t.states[capture.status])}
    <span class="grow"
      ><bdi class="image-name">${capture.name}</bdi>
      <span class="dim">${renderOrigin(capture)}, ${renderAmount(capture)}</span></span
    >
    <span class="when">${renderTime(capture.touchedAt, clock)}</span>
    <a class="button" href="${address(CAPTURE_PAGE, { id: capture.id })}">${t.review}</a>
  </li>`

const renderOrigin = ({ source }: Capture): Content =>
  source.mac === null
    ? t.byHand
    : fillHtml(t.from, { machine: html`<bdi>${source.hostname ?? source.mac}</bdi>` })

const renderAmount = ({ offset, end }: Capture): string =>
  end === null ? fill(t.received, { size: renderSize(offset) }) : renderSize(end.bytes)

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
  const facts = one.facts
  return factList([
    [facts.name, html`<bdi class="image-name">${name}</bdi>`],
    [facts.state, badge(TONES[status], t.states[status])],
    [facts.size, end === null ? renderAmount(capture) : renderBytes(end.bytes)],
    [facts.digest, end === null ? null : copyable(end.sha256)],
    [facts.indexDigest, end === null ? null : copyable(end.index_sha256)],
    [facts.machine, renderMachine(source.mac, serverLink)],
    [facts.host, source.hostname === null ? null : html`<bdi>${source.hostname}</bdi>`],
    [facts.disk, html`<bdi>${disk.model ?? disk.path ?? one.unknown}</bdi>`],
    [facts.serial, disk.serial === null ? null : copyable(disk.serial)],
    [facts.diskSize, renderDiskBytes(disk.size_bytes)],
    [facts.generalized, source.generalized ? one.yes : one.no],
    [facts.begun, renderTime(capture.createdAt, clock)],
  ])
}

function renderMachine(mac: string | null, serverLink: CaptureView['serverLink']): Content {
  if (mac === null) return t.byHand
  const href = serverLink(`/ui/machines/${mac}`)
  const shown = html`<code>${mac}</code>`
  return href === null ? shown : html`<a href="${href}">${shown}</a>`
}

const renderWarnings = ({ end }: Capture): Content =>
  end === null || end.warnings.length === 0
    ? null
    : card({
        title: one.warnings.title,
        body: html`<p class="dim">${one.warnings.hint}</p>
          <ul class="rows">
            ${end.warnings.map((warning) => html`<li><bdi>${warning}</bdi></li>`)}
          </ul>`,
      })

const renderDecision = ({ capture, typed }: CaptureView): Html =>
  html`${
      capture.end === null
        ? banner('ready', one.unfinished)
        : card({
            title: one.accept.title,
            body: html`<form method="post" action="${CAPTURE_PAGE}/accept">
              ${hidden({ id: capture.id })}
              ${textField({
                name: 'name',
                label: one.accept.name,
                hint: one.accept.nameHint,
                value: typed?.name ?? capture.name,
                error: typed?.error ?? null,
                required: true,
              })}
              <button class="primary">${one.accept.button}</button>
            </form>`,
          })
    }
    <details>
      <summary>${one.reject.title}</summary>
      <form method="post" action="${CAPTURE_PAGE}/reject">
        ${hidden({ id: capture.id })}
        <p>${fillHtml(one.reject.text, { name: html`<strong>${capture.name}</strong>` })}</p>
        <button class="danger">${one.reject.button}</button>
      </form>
    </details>`
