/** Three ways to install a live system on the Netboot page: fetch a release, upload its files, or build it. */
import type { H3Event } from 'h3'
import type { ShownSetting } from '../../../../core/config/shown-setting.ts'
import { card, copyBlock } from '../../../../web/ui/elements.ts'
import { textField } from '../../../../web/ui/fields.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
import type { PageContext } from '../frame/page-context.ts'

const PATH = '/ui/netboot'

export const renderInstall = (context: PageContext, event: H3Event): Html =>
  card({
    title: 'Install a live system',
    id: 'install',
    body: html`<div class="ways">
      <section>
        <h3>Fetch a release</h3>
        ${renderFetch(context, event)}
      </section>
      <section>
        <h3>Upload the files</h3>
        ${renderUpload()}
      </section>
      <section>
        <h3>Build it</h3>
        ${renderBuild(context)}
      </section>
    </div>`,
  })

/** One button saves where releases are and fetches one. */
function renderFetch({ services, site }: PageContext, event: H3Event): Html {
  const rows = services.config.list()
  const typed = site.notices.read(event)?.typed ?? {}
  return html`<form method="post" action="${PATH}/fetch-release">
    ${sourceField(find(rows, 'releases', 'base_url'), {
      name: 'site',
      label: 'Release site',
      placeholder: 'https://github.com',
      typed,
    })}
    ${sourceField(find(rows, 'boot', 'release_repo'), {
      name: 'repository',
      label: 'Repository',
      placeholder: 'owner/name',
      typed,
    })}
    ${textField({
      name: 'tag',
      label: 'Release',
      value: typed['tag'] ?? services.config.current().boot.release_tag,
      hint: html`A tag such as <code>v1.4.0</code>, or <code>latest</code>.`,
    })}
    <button class="primary">Fetch release</button>
    <p class="hint">The files are verified before machines boot them.</p>
  </form>`
}

const find = (rows: readonly ShownSetting[], section: string, key: string) =>
  rows.find((row) => row.section === section && row.key === key)

interface SourceField {
  readonly name: 'site' | 'repository'
  readonly label: string
  readonly placeholder: string
  readonly typed: Readonly<Record<string, string>>
}

/** What the environment sets cannot be changed here. */
function sourceField(
  row: ShownSetting | undefined,
  { name, label, placeholder, typed }: SourceField,
): Content {
  if (row?.origin.by === 'environment') {
    return html`<div class="field">
      <strong>${label}</strong>
      <p><code>${row.shown}</code></p>
      <p class="hint">Set by <code>${row.origin.variable}</code>.</p>
    </div>`
  }
  return textField({ name, label, placeholder, mono: true, value: typed[name] ?? row?.text ?? '' })
}

/** The script sends each file by `PUT /boot/<name>`; checksums go first, so that the others are checked. */
const renderUpload = (): Html =>
  html`<form
      class="scripted-only"
      data-upload="files"
      data-to="/boot/"
      data-done="${PATH}?uploaded="
    >
      <div class="field">
        <label for="boot-files">Kernel, initrd and squashfs</label>
        <input
          id="boot-files"
          type="file"
          multiple
          required
          accept=".vmlinuz,.initrd,.squashfs,.sha256,.efi"
          aria-describedby="boot-files-hint"
        />
        <p class="hint" id="boot-files-hint">
          Named as in a release: <code>flasher-netboot-pc-x86_64-v1.4.0.vmlinuz</code>. Add the
          <code>.sha256</code> file, and the others are checked against it.
        </p>
      </div>
      <button>Upload</button>
      <div class="upload-status" role="status"></div>
    </form>
    <p class="unscripted-only">
      Uploading here needs JavaScript. Without it, copy the files into the boot directory of the
      server.
    </p>`

const renderBuild = ({ services }: PageContext): Html => {
  const { dir } = services.netboot.bootFiles
  return html`<p>In a checkout of flasher on this host, as root:</p>
    ${copyBlock(
      `npx pnpm build:images netboot-pc\ncp dist/flasher-netboot-pc-* ${dir}/\n`,
      'Commands that build a live system',
    )}
    <p class="hint">Files copied into <code>${dir}</code> are used once all three are there.</p>`
}
