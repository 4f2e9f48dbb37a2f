/** Three ways to add an image: from an address, by an upload, and by a copy into the folder. */
import { IMAGE_ENDINGS, IMAGE_FORMATS, type ImageFormat } from '#appliance/disk-images.ts'
import { isOutOfOrder, isStoredRaw } from '#engine/image/rules/format.ts'
import { fill } from '#kit/texts/text.ts'
import { MAX_PART_BYTES } from '#engine/catalog/rules/image-upload.ts'
import { card, copyBlock, renderWays } from '#kit/web/ui/elements.ts'
import { checkField, textField } from '#kit/web/ui/fields.ts'
import { attributes, fillHtml, html, type Html } from '#kit/web/ui/html.ts'
import { renderUploadForm } from '#kit/web/ui/upload-form.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.images.add

const list = (isMeant: (format: ImageFormat) => boolean): string =>
  IMAGE_FORMATS.filter(isMeant)
    .map((format) => `.${format}`)
    .join(', ')

const ENDINGS = {
  raw: list(isStoredRaw),
  compressed: list((format) => !isStoredRaw(format) && !isOutOfOrder(format)),
  others: list(isOutOfOrder),
}

export interface AddForm {
  readonly values: Readonly<Record<string, string>>
  readonly errors: Readonly<Record<string, string>>
}

export const EMPTY_FORM: AddForm = { values: {}, errors: {} }

export const renderAddCard = (form: AddForm, folder: string, isFirst: boolean): Html =>
  card({
    title: isFirst ? t.first : t.title,
    id: 'add',
    body: html`${isFirst ? html`<p>${t.introduction}</p>` : null}
    ${renderWays([
      [t.address.title, renderAddressForm(form)],
      [t.upload.title, renderUpload()],
      [t.copy.title, renderCopy(folder)],
    ])}`,
  })

const renderCopy = (folder: string): Html =>
  html`<p>${t.copy.text}</p>
    ${copyBlock(
      `cp debian-13.img.zst ${quote(folder)}/
`,
      t.copy.label,
    )}
    <p class="hint">${fillHtml(t.copy.hint, { sums: html`<code>.sha256</code>` })}</p>`

const renderAddressForm = (form: AddForm): Html =>
  html`<form method="post" action="/ui/add">
    ${textField({
      ...typed(form, 'src'),
      label: t.address.label,
      type: 'url',
      required: true,
      mono: true,
      placeholder: 'https://…/debian-13.img.zst',
      hint: t.address.hint,
    })}
    ${renderDetails(form)}
    <button class="primary">${t.address.button}</button>
  </form>`

function renderDetails(form: AddForm): Html {
  const names = ['name', 'sha256', 'index_sha256', 'any_content']
  const open = names.some((name) => form.values[name] || form.errors[name])
  return html`<details${attributes({ open })}>
    <summary>${t.address.details}</summary>
    ${textField({
      ...typed(form, 'name'),
      label: t.address.name,
      hint: t.address.nameHint,
    })}
    ${textField({
      ...typed(form, 'sha256'),
      label: t.address.digest,
      mono: true,
      hint: t.address.digestHint,
    })}
    ${textField({
      ...typed(form, 'index_sha256'),
      label: t.address.indexDigest,
      mono: true,
      hint: t.address.indexDigestHint,
    })}
    ${checkField({
      name: 'any_content',
      label: t.address.anyContent,
      checked: form.values['any_content'] === '1',
      hint: t.address.anyContentHint,
    })}
  </details>`
}

const typed = ({ values, errors }: AddForm, name: string) => ({
  name,
  value: values[name] ?? '',
  error: errors[name] ?? null,
})

const renderUpload = (): Html =>
  renderUploadForm({
    kind: { name: 'image', partBytes: MAX_PART_BYTES },
    done: '/ui/dashboard?uploaded=',
    id: 'image-file',
    label: t.upload.label,
    hint: fill(t.upload.hint, ENDINGS),
    // Browsers look only at what follows the last dot.
    accept: IMAGE_ENDINGS.map((ending) => ending.slice(ending.lastIndexOf('.'))).join(','),
    fields: html`<details>
      <summary>${t.upload.details}</summary>
      ${textField({
        name: 'upload-sha256',
        label: t.upload.digest,
        mono: true,
        hint: t.upload.digestHint,
      })}
    </details>`,
    button: t.upload.button,
    unscripted: t.upload.unscripted,
  })

const quote = (path: string): string =>
  /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`
