/** The pages of the image cache, in English. */
export const IMAGES = {} as const
