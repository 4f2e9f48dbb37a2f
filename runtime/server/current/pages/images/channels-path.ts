/** The addresses of the page of channels. */

export const CHANNELS_PATH = '/ui/channels'

export const channelRemovalPath = (name: string): string =>
  `${CHANNELS_PATH}/${encodeURIComponent(name)}/remove`

export const CHANNEL_SAVE_PATH = `${CHANNELS_PATH}/save`
