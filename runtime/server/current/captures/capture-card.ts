/** The card of a machine's page that orders a capture, and shows how the newest one is or was. */
import { nameAmong, type InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { nameCapture, isPending, type CaptureOrder } from '#engine/capture/rules/order.ts'
import { printable } from '#kit/foundation/printable.ts'
import { upperFirst } from '#kit/foundation/text.ts'
import { banner, foldedCard } from '#kit/web/ui/elements.ts'
import { checkField, hidden, selectField, textField } from '#kit/web/ui/fields.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { IMAGES } from '#kit/web/ui/rules/sections.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { nameOf } from '#server/current/view/machine-view.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import { opensQuestion, renderQuestion } from '#server/pages/question.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'

/** Kept when the form is refused; other forms of the page have none of these fields. */
const TYPED = {
  name: 'capture_name',
  disk_serial: 'capture_disk',
  generalize: 'generalize',
} as const

export const readCapture = (form: URLSearchParams) => ({
  name: form.get(TYPED.name)?.trim() ?? '',
  disk_serial: form.get(TYPED.disk_serial) || null,
  generalize: form.has(TYPED.generalize),
})

export const typedCapture = ({
  name,
  disk_serial,
  generalize,
}: ReturnType<typeof readCapture>): Notice['typed'] => ({
  [TYPED.name]: name,
  [TYPED.disk_serial]: disk_serial ?? '',
  [TYPED.generalize]: generalize ? '1' : '',
})

export function renderCaptureCard(
  context: CurrentContext,
  machine: Machine,
  notice: Notice | null,
): Html {
  const { capture } = machine
  return foldedCard({
    title: 'Capture',
    id: 'capture',
    about: 'Make an image of one of its disks',
    isOpen: capture !== null || notice?.typed[TYPED.name] !== undefined,
    body: isPending(capture)
      ? renderPending(capture)
      : html`${capture === null ? null : renderEnded(capture, context.clock())}
        ${context.services.cacheUrl() === null ? html`<p>Captured images go to the image cache. No cache is connected.</p>` : renderForm(machine, notice)}`,
  })
}

/** A button of the page's first card cancels it. */
const renderPending = ({ name, disk_serial: serial }: CaptureOrder): Html =>
  html`<p class="sentence">
    ${fillHtml('The disk {disk} is captured as {name}.', {
      disk: html`<code>${printable(serial)}</code>`,
      name: html`<strong><bdi>${name}</bdi></strong>`,
    })}
  </p>`

function renderEnded(order: CaptureOrder, clock: Clock): Content {
  const name = html`<strong><bdi>${order.name}</bdi></strong>`
  const time = renderTime(order.ended_at, clock)
  switch (order.result) {
    case null:
      return null
    case 'done': {
      const images = html`<a href="${IMAGES}">Images</a>`
      return banner(
        'done',
        fillHtml('{name} was captured {time}. Accept it under {images} to use it.', {
          name,
          time,
          images,
        }),
      )
    }
    case 'failed': {
      const reason = upperFirst(printable(order.reason ?? 'The machine gave no reason.'))
      return banner('failed', html`The capture of ${name} failed ${time}. ${reason}`)
    }
    case 'cancelled':
      return banner('ready', html`The capture of ${name} was cancelled ${time}.`)
  }
}

export const GENERALIZE_HINT =
  'Removes SSH host keys, the machine ID and similar files, so that copies do not share them.'

function renderForm(machine: Machine, notice: Notice | null): Html {
  const typed = notice?.typed ?? {}
  const isRefused = typed[TYPED.name] !== undefined
  return html`<p>
      ${'Makes an image of one disk at the next network boot and uploads it to the cache. The disk is only read.'}
    </p>
    <form ${opensQuestion(`${machinePath(machine.mac)}/do/capture`)}>
      ${hidden({ confirm: 'ask' })}
      ${textField({
        name: TYPED.name,
        label: 'New image',
        hint: 'Must end in .img.zst.',
        value: typed[TYPED.name] ?? suggestName(machine),
        error: isRefused ? (notice?.error ?? null) : null,
        required: true,
        maxLength: 255,
      })}
      ${selectField({
        name: TYPED.disk_serial,
        label: 'Disk',
        value: typed[TYPED.disk_serial] ?? machine.target_disk_serial ?? '',
        options: listDisks(machine),
      })}
      ${checkField({
        name: TYPED.generalize,
        label: 'Remove host keys and the machine ID',
        hint: GENERALIZE_HINT,
        checked: isRefused ? typed[TYPED.generalize] === '1' : true,
      })}
      <button>Capture at next boot…</button>
    </form>`
}

/** Its form posts `confirm=yes`. */
export function renderCaptureQuestion(
  context: CurrentContext,
  machine: Machine,
  asked: ReturnType<typeof readCapture>,
): Html {
  const { name, disk_serial: serial, generalize } = asked
  const disk = serial ?? machine.target_disk_serial
  return renderQuestion({
    title: html`Capture a disk of <bdi>${nameOf(machine)}</bdi>?`,
    body: html`<p>
        ${fillHtml(
          'At its next network boot, {disk} is read and uploaded to the cache as {image}. Nothing is written to it.',
          {
            disk: disk === null ? 'its selected disk' : html`<code>${printable(disk)}</code>`,
            image: html`<strong><bdi>${name}</bdi></strong>`,
          },
        )}
      </p>
      <p>
        ${generalize ? 'Host keys and the machine ID are removed from the image.' : 'Host keys and the machine ID stay in the image. All machines flashed with it share them.'}
      </p>`,
    command: renderCurlBlock(context, [
      {
        method: 'POST',
        path: `/machines/${machine.mac}/capture`,
        body: asked,
        scope: 'flash',
      },
    ]),
    form: {
      action: `${machinePath(machine.mac)}/do/capture`,
      fields: hidden({
        [TYPED.name]: name,
        [TYPED.disk_serial]: serial,
        [TYPED.generalize]: generalize ? '1' : null,
        confirm: 'yes',
      }),
      cancel: `${machinePath(machine.mac)}#capture`,
      button: html`<button class="primary">Order the capture</button>`,
    },
  })
}

/** Only identifiable disks; none is known before the first live boot. */
function listDisks({ known_disks: disks, target_disk_serial: serial }: Machine) {
  const options = (disks ?? []).flatMap((disk) => {
    const id = nameAmong(disk, disks ?? [])
    return id === null ? [] : [{ value: id, text: nameDisk(disk, id) }]
  })
  const isListed = options.some(({ value }) => value === serial)
  return isListed || (serial === null && options.length > 0)
    ? options
    : [
        { value: serial ?? '', text: serial === null ? 'The selected disk' : printable(serial) },
        ...options,
      ]
}

const nameDisk = (disk: InventoryDisk, serial: string): string =>
  `${printable(serial)} (${printable(disk.path)})`

/** `web-42.img.zst`. */
const suggestName = (machine: Machine): string => {
  const name = nameCapture(machine, '{name}.img.zst')
  return name.ok ? name.value : ''
}
