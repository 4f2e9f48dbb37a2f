/** The views that a release line renders for the shared server. */
import type { ChannelViews } from '../updates/channel.ts'
import type { SiteViews } from '../../kit/web/ui/site-views.ts'

export interface ServerViews<M> extends ChannelViews<M>, SiteViews {}
