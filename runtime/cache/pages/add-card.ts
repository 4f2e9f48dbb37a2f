/** Three ways to add an image: from an address, by an upload, and by a copy into the folder. */
import { MAX_PART_BYTES } from '../../core/catalog/image-upload.ts'
import { card, copyBlock } from '../../web/ui/elements.ts'
import { textField } from '../../web/ui/fields.ts'
import { attributes, html, type Html } from '../../web/ui/html.ts'

/** What was typed, and why it was refused. */
export interface AddForm {
  readonly values: Readonly<Record<string, string>>
  /** By field. */
  readonly errors: Readonly<Record<string, string>>
}

export const EMPTY_FORM: AddForm = { values: {}, errors: {} }

export const renderAddCard = (form: AddForm, folder: string, isFirst: boolean): Html =>
  card({
    title: isFirst ? 'No images yet: add the first one' : 'Add an image',
    id: 'add',
    body: html`${isFirst ? INTRODUCTION : null}
      <div class="ways">
        <section>
          <h3>From an address</h3>
          ${renderAddressForm(form)}
        </section>
        <section>
          <h3>From your computer</h3>
          ${renderUploadForm()}
        </section>
        <section>
          <h3>Copy it into the folder</h3>
          <p>On the host of the cache:</p>
          ${copyBlock(`cp debian-13.img.zst ${quote(folder)}/\n`, 'A command that copies an image')}
          <p class="hint">
            A file is offered a few seconds after it is complete. A <code>.sha256</code> file beside
            it is checked.
          </p>
        </section>
      </div>`,
  })

const INTRODUCTION = html`<p>Machines are flashed with images from this page.</p>`

const renderAddressForm = (form: AddForm): Html =>
  html`<form method="post" action="/ui/add">
    ${textField({
      ...typed(form, 'src'),
      label: 'URL',
      type: 'url',
      required: true,
      mono: true,
      placeholder: 'https://…/debian-13.img.zst',
      hint: 'Of an image, or of a catalog (.toml, oras://…/catalog:tag) to add all its images.',
    })}
    ${renderDetails(form)}
    <button class="primary">Add and download</button>
  </form>`

function renderDetails(form: AddForm): Html {
  const names = ['name', 'sha256']
  const open = names.some((name) => form.values[name] || form.errors[name])
  return html`<details${attributes({ open })}>
    <summary>Name and checksum</summary>
    ${textField({
      ...typed(form, 'name'),
      label: 'Name',
      hint: 'Leave empty to use the last part of the URL.',
    })}
    ${textField({
      ...typed(form, 'sha256'),
      label: 'SHA-256',
      mono: true,
      hint: 'Of the downloaded file. A file with another checksum is discarded.',
    })}
  </details>`
}

const typed = ({ values, errors }: AddForm, name: string) => ({
  name,
  value: values[name] ?? '',
  error: errors[name] ?? null,
})

/** A form alone cannot resume, so without a script there is none. */
const renderUploadForm = (): Html =>
  html`<form
      class="scripted-only"
      data-upload="image"
      data-part="${MAX_PART_BYTES}"
      data-done="/ui/dashboard?uploaded="
    >
      <div class="field">
        <label for="image-file">Image file</label>
        <input
          id="image-file"
          type="file"
          required
          accept=".img,.zst,.xz,.gz,.bz2,.qcow2"
          aria-describedby="image-file-hint"
        />
        <p class="hint" id="image-file-hint">
          A raw image (.img), also compressed (.img.zst, .img.xz, .img.gz, .img.bz2), or .qcow2. An
          upload that is interrupted continues where it stopped.
        </p>
      </div>
      <details>
        <summary>Checksum</summary>
        ${textField({
          name: 'upload-sha256',
          label: 'SHA-256',
          mono: true,
          hint: 'A file with another checksum is discarded.',
        })}
      </details>
      <button>Upload</button>
    </form>
    <p class="unscripted-only">
      Uploading here needs JavaScript. Without it, copy the file into the folder, or add it from an
      address.
    </p>`

/** For a shell, where it must be. */
const quote = (path: string): string =>
  /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`
