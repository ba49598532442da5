# One image for all apps: docker run docket gateway|sessions|tools|console. What is in it: scripts/image.mjs.
FROM node:20.19.5-bookworm AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build && node scripts/image.mjs /app

FROM node:20.19.5-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
# Owned by root: nothing that runs as this user can change the code that it runs.
COPY --from=build /app /app
USER 10001:10001
ENTRYPOINT ["node", "/app/bin/app.mjs"]
