/** /ui/netboot: the live systems that machines boot, their releases, and the TFTP daemon. */
import type { H3Event, HTTPResponse } from 'h3'
import {
  badge,
  banner,
  card,
  copyBlock,
  progress,
  renderBytes,
  renderTabs,
} from '../../../../web/ui/elements.ts'
import { postButton } from '../../../../web/ui/fields.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
import { refreshEvery } from '../../../../web/ui/refresh.ts'
import { numberColumn, renderTable } from '../../../../web/ui/tables.ts'
import type { Route } from '../../../../web/http/route.ts'
import { renderTime, type Clock } from '../../../../web/ui/times.ts'
import {
  listIncomplete,
  type IncompleteSet,
  type SetAside,
} from '../../../../core/boot/boot-set.ts'
import { renderTftpSetup } from '../../../../core/boot/tftp.ts'
import type { BootFile, BootFolder, KnownSet } from '../../../../services/boot/boot-files.ts'
import type { FetchJob } from '../../../../services/boot/release-job.ts'
import { isOver } from '../../../../services/host/jobs.ts'
import { renderInstall } from './install.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { pageRoute } from '../frame/page-routes.ts'
import { renderEventList } from '../view/event-list.ts'

const PATH = '/ui/netboot'

const TABS = [
  ['Live systems', '#artifacts'],
  ['Install', '#install'],
  ['TFTP daemon', '#tftp'],
  ['Activity', '#activity'],
] as const

/** `routes/releases.ts` has its posts. */
export const netbootPages = (context: PageContext): readonly Route[] => [
  pageRoute(PATH, (event) => show(context, event)),
]

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { releases, bootFiles } = context.services.netboot
  const clock = context.clock()
  const [files, events] = await Promise.all([
    bootFiles.list(),
    context.site.journal.list({ subject_kind: 'netboot', limit: 12 }),
  ])
  const isBusy = releases.jobs().some((job) => !isOver(job))
  return await context.show(event, {
    title: 'Netboot',
    section: PATH,
    actions: html`<a class="button" href="#install">Install a live system</a>`,
    messages: html`${messageOf(context, event)}${renderUploaded(event)}`,
    body: html`${renderTabs(TABS)}
      <div class="board" ${refreshEvery('netboot', PATH, isBusy ? 1 : null)}>
        ${renderJobs(releases.jobs(), clock)}
        ${card({ title: 'Live systems', id: 'artifacts', body: renderArtifacts(bootFiles, files, clock) })}
        ${renderInstall(context, event)} ${renderTftp(context, event)}
        ${card({
          title: 'Activity',
          id: 'activity',
          aside: html`<a class="small" href="/ui/events?subject_kind=netboot">All</a>`,
          body: renderEventList(events, clock),
        })}
      </div>`,
  })
}

function renderJobs(jobs: readonly FetchJob[], clock: Clock): Content {
  const shown = jobs.filter((job) => !isOver(job) || job.status === 'failed').slice(0, 4)
  if (shown.length === 0) return null
  return card({
    title: 'Downloads',
    body: html`<ul class="rows">
      ${shown.map((job) => renderJob(job, clock))}
    </ul>`,
  })
}

function renderJob(job: FetchJob, clock: Clock): Html {
  const { tag, status, artifact, bytes_done: bytes, bytes_total: total, error } = job
  if (isOver(job)) {
    return html`<li>
      ${badge('failed', status)}<span class="grow">Release ${tag}: ${error}</span>
      <span class="when">${renderTime(job.finished_at, clock)}</span>
    </li>`
  }
  const share = total === null || total === 0 ? '' : `, ${Math.floor((100 * bytes) / total)} %`
  return html`<li>
    <span class="grow">Release ${tag} <span class="dim small">${artifact ?? status}</span></span>
    ${progress(status === 'queued' ? null : bytes, total, `${status}${share}`)}
    ${postButton({ action: `${PATH}/cancel-fetch`, label: 'Cancel', values: { tag } })}
  </li>`
}

function renderArtifacts(
  bootFiles: Pick<BootFolder, 'sets' | 'setAside'>,
  files: readonly BootFile[],
  clock: Clock,
): Content {
  if (files.length === 0) {
    return html`<p>
      No live system is installed. Machines boot one from the network to be flashed; until then they
      can only boot their own disks.
    </p>`
  }
  const [sets, names] = [bootFiles.sets(), files.map(({ name }) => name)]
  return html`${sets.length === 0 ? INCOMPLETE : null}
    <ul class="rows">
      ${sets.map(renderSet)} ${listIncomplete(names).map(renderIncomplete)}
      ${bootFiles.setAside().map(renderAside)}
    </ul>
    ${renderTable({
      caption: 'Files in the boot directory',
      columns: ['File', numberColumn('Size'), 'Added'],
      rows: files.map(
        ({ name, sizeBytes, modifiedAt }) =>
          html`<tr>
            <th scope="row">
              <a class="mono" href="/boot/${encodeURIComponent(name)}">${name}</a>
            </th>
            <td class="number" data-label="Size">${renderBytes(sizeBytes)}</td>
            <td class="nowrap" data-label="Added">${renderTime(modifiedAt, clock)}</td>
          </tr>`,
      ),
    })}`
}

const INCOMPLETE = html`<p>
  A live system is a kernel (.vmlinuz), an initrd and a squashfs of the same version. None is
  complete yet.
</p>`

const renderIncomplete = ({ arch, version, missing }: IncompleteSet): Html =>
  html`<li>
    <span class="grow"
      ><strong>${version}</strong> <span class="tag">${arch}</span
      ><span class="small dim missing">Missing: ${missing.join(', ')}</span></span
    >${badge('needs-you', 'incomplete')}
  </li>`

/** Files of another system under the same names, such as the deployed one. */
const renderAside = ({ arch, version, reason }: SetAside): Html =>
  html`<li>
    <span class="grow"
      ><strong>${version}</strong> <span class="tag">${arch}</span
      ><span class="small dim missing">${reason}</span></span
    >${badge('needs-you', 'not used')}
  </li>`

const renderSet = ({ arch, version, isActive, isPrevious }: KnownSet): Html =>
  html`<li>
    <span class="grow"><strong>${version}</strong> <span class="tag">${arch}</span></span>
    ${
      isActive
        ? badge('done', 'active')
        : postButton({
            action: `${PATH}/use-set`,
            label: isPrevious ? `Go back to ${version}` : `Use ${version}`,
            values: { arch, version },
          })
    }
  </li>`

/** What the script that uploads says in the address. */
function renderUploaded(event: H3Event): Content {
  const count = Number(event.url.searchParams.get('uploaded') ?? 0)
  if (!Number.isInteger(count) || count < 1) return null
  return banner('done', count === 1 ? 'The file was uploaded.' : `${count} files were uploaded.`)
}

function renderTftp({ services, site }: PageContext, event: H3Event): Html {
  const { isChecked, isActive, isReady, text, hint } = services.netboot.tftp()
  const tone = isReady ? 'done' : isActive ? 'needs-you' : isChecked ? 'failed' : 'ready'
  const word = isActive ? 'active' : isChecked ? 'inactive' : 'not checked yet'
  return card({
    title: 'TFTP daemon',
    id: 'tftp',
    aside: badge(tone, word),
    body: html`<p>${text} ${hint}</p>
      ${isReady ? null : renderTftpHelp(services.netboot.reachedAt(site.contact(event).baseUrl))}
      <p class="dim small">
        This server only checks it; the service manager of its host starts and stops it. The host
        that is checked: <a href="/ui/settings#netboot.tftp_probe_host">netboot.tftp_probe_host</a>.
      </p>`,
  })
}

const renderTftpHelp = (baseUrl: string): Html =>
  html`<p>
      BIOS machines and most UEFI firmware load iPXE by TFTP. These commands set it up on a Debian
      host; UEFI HTTP Boot needs none of it.
    </p>
    ${copyBlock(renderTftpSetup(baseUrl), 'Commands that set up a TFTP daemon')}`
