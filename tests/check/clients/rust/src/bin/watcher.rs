//! A watcher of kube-rs that writes what a ConfigMap says into its annotation.

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let watched = Api::<ConfigMap>::all(client.clone());
    let mut seen = watcher(watched, watcher::Config::default().labels("app=checked"))
        .default_backoff()
        .applied_objects()
        .boxed();
    while let Some(next) = seen.next().await {
        match next {
            Ok(map) => {
                if let Err(error) = note(&client, &map).await {
                    eprintln!("{error}");
                }
            }
            Err(error) => eprintln!("{error}"), // the watcher goes on, after its backoff
        }
    }
    Ok(())
}

async fn note(client: &Client, map: &ConfigMap) -> kube::Result<()> {
    let message = map.data.as_ref().and_then(|data| data.get("message"));
    if map.annotations().get("checked.dev/seen") == message {
        return Ok(());
    }
    let maps = Api::<ConfigMap>::namespaced(client.clone(), &map.namespace().unwrap_or_default());
    let patch = json!({"metadata": {"annotations": {"checked.dev/seen": message}}});
    maps.patch(&map.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.map(|_| ())
}
