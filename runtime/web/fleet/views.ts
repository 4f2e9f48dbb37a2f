/** The views that a release line renders for the shared server. */
import type { ErrorView } from '../http/caller.ts'
import type { ChannelViews } from '../live/channel.ts'
import type { Content } from '../ui/html.ts'
import type { Theme } from '../ui/theme.ts'

/** What a page shows when somebody must log in, or when it failed. */
export interface LoginView {
  readonly error: string | null
  /** A local path to go to afterwards, checked. */
  readonly next: string
}

interface DocumentView {
  readonly title: string
  readonly body: Content
  readonly theme: Theme
  /** Its own address. */
  readonly here: string
}

export interface ServerViews<M> extends ChannelViews<M> {
  renderLogin(view: LoginView): string
  renderError(view: ErrorView): string
  /** A page for everybody, in the frame of the others. */
  renderDocument(view: DocumentView): string
}
