/** Three ways to install a live system on the Netboot page: fetch a release, upload its files, or build it. */
import type { ShownSetting } from '#kit/config/rules/shown-setting.ts'
import { completeSource } from '#fleet/boot/rules/release-source.ts'
import { card, copyBlock, renderWays } from '#kit/web/ui/elements.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { textField } from '#kit/web/ui/fields.ts'
import { renderUploadForm } from '#kit/web/ui/upload-form.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.netboot.install

const PATH = '/ui/netboot'

/** Folded once machines boot one; a link to the card opens it. */
export function renderInstall(context: CurrentContext): Html {
  const ways = renderWays([
    [t.fetch.title, renderFetch(context)],
    [t.upload.title, renderUpload()],
    [t.build.title, renderBuild(context)],
  ])
  const isInstalled = Object.values(context.services.netboot.bootFiles.active()).some(Boolean)
  const isRefused = context.notice() !== null
  return isInstalled && !isRefused
    ? html`<details class="card">
        <summary>${t.another}</summary>
        <div id="install">${ways}</div>
      </details>`
    : card({ title: t.title, id: 'install', body: ways })
}

function renderFetch(context: CurrentContext): Html {
  const { services, notice } = context
  const rows = services.config.list()
  const site = find(rows, 'releases', 'base_url')
  const repository = find(rows, 'boot', 'release_repo')
  const set = { site: textOf(site), repository: textOf(repository) }
  const { typed, errors } = notice() ?? NOTHING_REFUSED
  const values = { ...completeSource(set, services.releaseSource), ...typed }
  const tag = typed['tag'] ?? services.config.current().boot.release_tag
  return html`<form method="post" action="${PATH}/fetch-release">
      ${sourceField(site, {
        name: 'site',
        label: t.fetch.site,
        placeholder: 'https://github.com',
        hint: t.fetch.siteHint,
        value: values.site,
        error: errors['site'] ?? null,
      })}
      ${sourceField(repository, {
        name: 'repository',
        label: t.fetch.repository,
        placeholder: 'owner/name',
        hint: t.fetch.repositoryHint,
        value: values.repository,
        error: errors['repository'] ?? null,
      })}
      ${textField({
        name: 'tag',
        label: t.fetch.tag,
        value: tag,
        error: errors['tag'] ?? null,
        hint: fillHtml(t.fetch.tagHint, {
          tag: html`<code>v1.4.0</code>`,
          latest: html`<code>latest</code>`,
        }),
      })}
      <button class="primary">${t.fetch.button}</button>
      <p class="hint">${t.fetch.hint}</p>
    </form>
    ${renderCurlBlock(context, [
      { method: 'POST', path: '/boot/releases', body: tag === '' ? {} : { tag }, scope: 'admin' },
    ])}`
}

const NOTHING_REFUSED: Pick<Notice, 'typed' | 'errors'> = { typed: {}, errors: {} }

const textOf = (row: ShownSetting | undefined): string => row?.text ?? ''

const find = (rows: readonly ShownSetting[], section: string, key: string) =>
  rows.find((row) => row.section === section && row.key === key)

interface SourceField {
  readonly name: 'site' | 'repository'
  readonly label: string
  readonly placeholder: string
  readonly hint: string
  readonly value: string
  readonly error: string | null
}

/** Read-only where the environment sets it. */
function sourceField(row: ShownSetting | undefined, { label, ...field }: SourceField): Content {
  if (row?.origin.by === 'environment') {
    return html`<div class="field">
      <strong>${label}</strong>
      <p><code>${row.shown}</code></p>
      <p class="hint">
        ${fillHtml(t.fetch.setBy, { variable: html`<code>${row.origin.variable}</code>` })}
      </p>
    </div>`
  }
  return textField({ ...field, label, mono: true })
}

/** A script sends files by `PUT /boot/<name>`, checksums first so that the rest is checked. */
const renderUpload = (): Html =>
  renderUploadForm({
    kind: { name: 'files', to: '/boot/' },
    done: `${PATH}?uploaded=`,
    id: 'boot-files',
    label: t.upload.label,
    hint: fillHtml(t.upload.hint, {
      name: html`<code>flasher-netboot-pc-x86_64-v1.4.0.vmlinuz</code>`,
      sums: html`<code>.sha256</code>`,
    }),
    accept: '.vmlinuz,.initrd,.squashfs,.sha256,.efi,.zip,.html',
    isMultiple: true,
    button: t.upload.button,
    unscripted: t.upload.unscripted,
  })

const renderBuild = ({ services }: CurrentContext): Html => {
  const { dir } = services.netboot.bootFiles
  return html`<p>${t.build.text}</p>
    ${copyBlock(
      `npx pnpm build:images netboot-pc\ncp dist/flasher-netboot-pc-* ${dir}/\n`,
      t.build.label,
    )}
    <p class="hint">${fillHtml(t.build.hint, { folder: html`<code>${dir}</code>` })}</p>`
}
