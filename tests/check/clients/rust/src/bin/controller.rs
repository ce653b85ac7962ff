//! A Controller of kube-rs: for a ConfigMap it keeps a finalizer, an annotation, and a child with the same data.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    runtime::{
        controller::{Action, Controller},
        finalizer::{Event, finalizer},
        watcher::Config,
    },
};
use serde_json::json;

const FINALIZER: &str = "checked.dev/child";
const MANAGER: &str = "checked";

type Failure = kube::runtime::finalizer::Error<kube::Error>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let maps = Api::<ConfigMap>::all(client.clone());
    let children = Api::<Secret>::all(client.clone());
    Controller::new(maps, Config::default().labels("app=checked"))
        .owns(children, Config::default())
        .shutdown_on_signal()
        .run(reconcile, again, Arc::new(client))
        .for_each(|result| async move {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
    Ok(())
}

async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, Failure> {
    let maps = Api::<ConfigMap>::namespaced((*client).clone(), &map.namespace().unwrap_or_default());
    finalizer(&maps, FINALIZER, map, |event| async {
        match event {
            Event::Apply(map) => keep(&client, &map).await,
            Event::Cleanup(map) => remove(&client, &map).await,
        }
    })
    .await
}

async fn keep(client: &Client, map: &ConfigMap) -> kube::Result<Action> {
    let namespace = map.namespace().unwrap_or_default();
    let message = map.data.as_ref().and_then(|data| data.get("message"));
    let name = format!("{}-child", map.name_any());
    let child = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "ownerReferences": [map.controller_owner_ref(&())]},
        "stringData": {"message": message},
    });
    let children = Api::<Secret>::namespaced(client.clone(), &namespace);
    children.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(child)).await?;
    if map.annotations().get("checked.dev/seen") != message {
        let maps = Api::<ConfigMap>::namespaced(client.clone(), &namespace);
        let seen = json!({"metadata": {"annotations": {"checked.dev/seen": message}}});
        maps.patch(&map.name_any(), &PatchParams::default(), &Patch::Merge(seen)).await?;
    }
    Ok(Action::await_change())
}

async fn remove(client: &Client, map: &ConfigMap) -> kube::Result<Action> {
    let children = Api::<Secret>::namespaced(client.clone(), &map.namespace().unwrap_or_default());
    let Some(child) = children.get_opt(&format!("{}-child", map.name_any())).await? else {
        return Ok(Action::await_change());
    };
    if child.owner_references().iter().any(|owner| Some(&owner.uid) == map.uid().as_ref()) {
        let only = Preconditions { uid: child.uid(), ..Preconditions::default() };
        match children.delete(&child.name_any(), &DeleteParams::default().preconditions(only)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other?),
        }
    }
    Ok(Action::await_change())
}

fn again(_: Arc<ConfigMap>, error: &Failure, _: Arc<Client>) -> Action {
    eprintln!("{error}");
    Action::requeue(Duration::from_secs(5))
}
