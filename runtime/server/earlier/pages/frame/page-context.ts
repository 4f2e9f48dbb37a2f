/** The context of every page of this line: the site, its services, and the frame. */
import type { H3Event, HTTPResponse } from 'h3'
import type { ImageShelf } from '../../../../engine/image/image-shelf.ts'
import type { ProvisionFiles } from '../../../../fleet/machine/provision-files.ts'
import type { InterfaceAddress } from '../../../../fleet/boot/rules/pxe-activation.ts'
import type { PxeHelper } from '../../../../fleet/boot/pxe-helper.ts'
import type { LiveFiles } from '../../../../fleet/boot/live-files.ts'
import type { ReleaseFetches } from '../../../../fleet/boot/releases.ts'
import { page, seeOther } from '../../../../kit/web/answers/answers.ts'
import { readPlace, type PageLayout, type PageView } from '../../../../kit/web/ui/layout.ts'
import { messageOf } from '../../../../kit/web/ui/form-notices.ts'
import { address, html } from '../../../../kit/web/ui/html.ts'
import type { Clock } from '../../../../kit/web/ui/times.ts'
import type { Site } from '../../../routes/site.ts'
import type { LineConfig } from '../../assembly/configuration.ts'
import type { Workflows } from '../../assembly/workflows.ts'
import type { Machine } from '../../rules/machine.ts'

export interface PxeServices extends PxeHelper {
  listAddresses(): readonly InterfaceAddress[]
  /** The one that the server listens on. */
  port(): number
}

export interface PageDependencies {
  readonly layout: PageLayout
  readonly services: {
    readonly config: LineConfig
    readonly shelf: ImageShelf
    readonly files: ProvisionFiles
    readonly workflows: Workflows
    readonly bootFiles: LiveFiles
    readonly releases: ReleaseFetches
    readonly pxe: PxeServices
  }
  /** Who runs the server; its password is the operator's. */
  readonly user: string
  /** An IANA name. */
  zone(): string
}

/** A page without what the context itself adds. */
type Page = Omit<PageView, 'theme' | 'here' | 'alarms'>

export interface PageContext extends PageDependencies {
  readonly site: Site<Machine>
  clock(): Clock
  /** Shows a page that says why the form that led here was refused. */
  show(event: H3Event, view: Page): Promise<HTTPResponse>
}

/** Makes the context of all pages; it holds nothing of a single request. */
export function createPageContext(site: Site<Machine>, parts: PageDependencies): PageContext {
  return {
    ...parts,
    site,
    clock: () => ({ now: site.now(), zone: parts.zone() }),
    async show(event, view) {
      const messages = html`${messageOf({ site }, event)}${view.messages}`
      // This line has no page of events.
      const text = parts.layout.page({ ...view, messages, ...readPlace(event), alarms: 0 })
      return page(text, 200, { vary: 'cookie' })
    },
  }
}

/** Redirects to a page, which shows the error. */
export const goBack = (
  { site }: PageContext,
  event: H3Event,
  path: string,
  error: string,
): HTTPResponse => seeOther(address(path, { notice: site.notices.keep(event, error) }))
